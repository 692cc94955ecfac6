//! `make bench`: every figure that docs/performance.md and SPECIFICATION.md quote, measured again.
//!
//! Speed is compared with fio in one run: A and B alternate, the ratio of each pair is taken, and
//! the median of the ratios is quoted with its range. Absolute figures of a shared machine say
//! little; ratios of neighbours in time do.
//!
//! `make profile`: where each nanosecond of the loops goes.

mod agents;
mod appliances;
mod bandwidth;
mod desktops;
mod distant;
mod fence;
mod file_tools;
mod footprint;
mod load;
mod memory;
mod network;
mod oltp;
mod openstack;
mod pairs;
mod profile;
mod proxmox;
mod rally;
mod serve;
mod serve_nbd;
mod servers;
mod simulator;
mod smtp;
mod start_up;
mod tools;
mod users;
mod vm_service;
mod vsphere;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use pairs::Verdict;
use tools::Target;

/// Pairs measured for each claim.
const ROUNDS: usize = 7;
/// Pairs of loads on files at most: each takes half a minute.
const FILE_ROUNDS: usize = 5;
/// Pairs with Rally: each takes half a minute.
const LEAST_OF_RALLY: usize = 3;
const USAGE: &str =
    "usage: bench [profile | fence [CASE] | simulator [CASE] | footprint | agents | appliances | load [ROUNDS] | serve [ROUNDS] | serve-nbd [ROUNDS] |
     start-up [ROUNDS] | network [ROUNDS] | oltp [ROUNDS] | users [ROUNDS] | vsphere [ROUNDS] | proxmox [ROUNDS] | openstack | rally [CASE] | desktops |
     [files] [ROUNDS]]";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("bench: a promise was not kept, see above");
            ExitCode::from(5)
        }
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "profile") {
        return profile::write().map(|()| true);
    }
    if let Some(verdicts) = one_part(&arguments)? {
        return Ok(all_kept(&verdicts));
    }
    let first = arguments.first().map(String::as_str);
    let only_files = first == Some("files");
    if only_files {
        arguments.remove(0);
    }
    let rounds = arguments.first().map_or(Ok(ROUNDS), |text| text.parse()).context(USAGE)?;
    let folder = tempfile::TempDir::new_in("target").context("run this from the repository")?;
    println!("{}", tools::machine()?);
    if only_files {
        println!("{rounds} alternated pairs a line; MB/s, operations/s, response times in ms\n");
        let verdicts = file_tools::compare(rounds, folder.path())?;
        return Ok(all_kept(&verdicts));
    }
    everything(rounds, folder.path()).map(|verdicts| all_kept(&verdicts))
}

fn all_kept(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| *verdict == Verdict::Kept)
}

/// The part that the first argument names; nothing where it names none.
fn one_part(arguments: &[String]) -> Result<Option<Vec<Verdict>>> {
    let only = arguments.get(1).map(String::as_str);
    let folder = || tempfile::TempDir::new_in("target").context("run this from the repository");
    let check = match arguments.first().map(String::as_str) {
        Some("fence") => return fence::check(ROUNDS, only).map(Some),
        Some("rally") => return rally::check(LEAST_OF_RALLY, only).map(Some),
        Some("simulator") => return simulator::check(ROUNDS, only).map(Some),
        Some("footprint") => {
            let folder = folder()?;
            let file = folder.path().join("bench.img");
            tools::make_file(&file)?;
            return footprint::check(folder.path(), &Target::File(file)).map(Some);
        }
        Some("appliances") => return appliances::check(folder()?.path()).map(Some),
        Some("desktops") => return desktops::check().map(Some),
        Some("agents") => return agents::check(folder()?.path()).map(Some),
        Some("load") => load::check,
        Some("network") => network::check,
        Some("oltp") => oltp::check,
        Some("serve") => serve::check,
        Some("serve-nbd") => serve_nbd::check,
        Some("start-up") => start_up::check,
        Some("users") => users::check,
        Some("vsphere") => vsphere::check,
        Some("openstack") => openstack::check,
        Some("proxmox") => proxmox::check,
        _ => return Ok(None),
    };
    let rounds = only.map_or(Ok(ROUNDS), str::parse).context(USAGE)?;
    let folder = folder()?;
    println!("{}", tools::machine()?);
    check(rounds, folder.path()).map(Some)
}

/// All parts, beside fio where it can do the same.
fn everything(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    let mut verdicts = load::check(rounds, folder)?;
    println!();
    verdicts.extend(bandwidth::check(folder, rounds)?);
    verdicts.extend(file_tools::compare(rounds.min(FILE_ROUNDS), folder)?);
    println!();
    verdicts.extend(fence::check(rounds, None)?);
    println!();
    verdicts.extend(simulator::check(rounds, None)?);
    println!();
    verdicts.extend(serve::check(rounds, folder)?);
    println!();
    verdicts.extend(serve_nbd::check(rounds, folder)?);
    println!();
    verdicts.extend(start_up::check(rounds, folder)?);
    println!();
    verdicts.extend(network::check(rounds, folder)?);
    println!();
    verdicts.extend(oltp::check(rounds, folder)?);
    println!();
    verdicts.extend(users::check(rounds, folder)?);
    println!();
    verdicts.extend(vsphere::check(rounds, folder)?);
    println!();
    verdicts.extend(openstack::check(rounds, folder)?);
    verdicts.extend(rally::check(LEAST_OF_RALLY.min(rounds), None)?);
    println!();
    verdicts.extend(proxmox::check(rounds, folder)?);
    println!();
    verdicts.extend(desktops::check()?);
    println!();
    let file = folder.join("bench.img");
    tools::make_file(&file)?;
    verdicts.extend(footprint::check(folder, &Target::File(file))?);
    verdicts.extend(agents::check(folder)?);
    verdicts.extend(appliances::check(folder)?);
    Ok(verdicts)
}
