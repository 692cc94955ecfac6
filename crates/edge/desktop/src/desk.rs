//! The way to a desktop.

use std::net::TcpStream;

/// A desktop, reached.
#[derive(Debug)]
pub struct Desk {
    /// To its VNC server.
    pub screen: TcpStream,
    /// To the program inside its session.
    pub control: TcpStream,
    /// What the VNC server asks for, if it does.
    pub password: Option<String>,
}
