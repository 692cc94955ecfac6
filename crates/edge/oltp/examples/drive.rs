//! A database populated and loaded from Rust: `drive URI WAREHOUSES USERS SECONDS`. Prints transactions a second and the driver's
//! CPU for each in microseconds.

use std::error::Error;
use std::sync::atomic::AtomicBool;

use virtbench_oltp::{Address, Connect, OltpError, Population, populate, run};
use virtbench_record::OltpPlan;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [uri, warehouses, users, seconds] = arguments.as_slice() else {
        return Err("usage: drive URI WAREHOUSES USERS SECONDS".into());
    };
    let connect = Connect { address: Address::parse(uri)?, password: std::env::var("PGPASSWORD").ok() };
    let stop = AtomicBool::new(false);
    let population = Population { warehouses: warehouses.parse()?, seed: 1 };
    match populate(&connect, population, false, &stop, &mut |_| {}) {
        Ok(populated) => println!("{} rows in {:.1} s", populated.rows, populated.took.as_secs_f64()),
        Err(OltpError::Populated { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let plan = OltpPlan {
        users: users.parse()?,
        ramp_up_ns: 0,
        time_ns: seconds.parse::<u64>()? * 1_000_000_000,
        deferred_delivery: false,
        ..OltpPlan::default()
    };
    let outcome = run(&connect, &plan, &stop, &mut |_| {})?;
    let cpu_us = outcome.own_cpu_per_transaction_ns.unwrap_or_default() / 1e3;
    println!("{:.1} transactions/s, {cpu_us:.1} us each", outcome.transactions_per_second);
    Ok(())
}
