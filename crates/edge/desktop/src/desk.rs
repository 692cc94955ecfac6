//! The way to a desktop.

use std::io;
use std::net::TcpStream;

/// The way to a desktop.
#[derive(Debug)]
pub struct Desk {
    /// To its VNC server; why there is none is the error of its user.
    pub screen: io::Result<TcpStream>,
    /// To the program inside its session. Where nobody is inside, operations end with the last change of the picture.
    pub control: Option<TcpStream>,
    /// What the VNC server asks for, if it does.
    pub password: Option<String>,
}
