//! Boots guests of User Mode Linux one after the other and prints how long each takes to greet, to answer and to end.

use std::error::Error;
use std::time::Instant;

use virtbench_lab::{UmlConfig, UmlGuest, UmlImage, UmlKernel};

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = UmlKernel::find()?;
    println!("{} ({})", kernel.program.display(), kernel.release);
    let image = UmlImage::new(&kernel, &[])?;
    for _ in 0..3 {
        let mut guest = UmlGuest::boot(&image, &UmlConfig::new(1))?;
        let (boot, crossing) = (guest.boot_time().as_secs_f64(), guest.greeting().crossing);
        println!("greeted after {boot:.2} s; {crossing:?}");
        let offset = guest.connection().synchronise(20).map_err(|error| guest.explain(error))?;
        println!("{offset:?}; {} processes", guest.process_ids().len());
        let begun = Instant::now();
        guest.shut_down();
        println!("ended after {:.2} s", begun.elapsed().as_secs_f64());
    }
    Ok(())
}
