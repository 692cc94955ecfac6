//! The program on Windows: it serves a controller over a session of ssh.

use std::process::ExitCode;

use virtbench_agent::protocol::SESSION;

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [flag, order] if flag == SESSION => virtbench_agent::run_session(order),
        _ => {
            eprintln!("virtbench-agent is started by virtbench, over ssh");
            ExitCode::from(2)
        }
    }
}
