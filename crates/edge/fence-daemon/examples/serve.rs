//! The daemon alone, without the rest of the command.
use virtbench_fence_daemon::{Daemon, config::Config, format, runtime::Stopper};
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let config = Config::load(arguments[2].as_ref()).unwrap_or_else(|e| panic!("{e}"));
    if arguments[1] == "format" {
        format(&config, false).unwrap_or_else(|e| panic!("{e}"));
        return;
    }
    let daemon = Daemon::start(&config, Stopper::new().unwrap()).unwrap_or_else(|e| panic!("{e}"));
    eprintln!("{:?}", daemon.served);
    daemon.run().unwrap();
}
