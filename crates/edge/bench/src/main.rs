//! `make bench`: every figure that README and SPECIFICATION quote, measured again.
//!
//! Speed is compared with fio in one run: A and B alternate, the ratio of each pair is taken, and
//! the median of the ratios is quoted with its range. Absolute figures of a shared machine say
//! little; ratios of neighbours in time do.

mod footprint;
mod pairs;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use pairs::{Claim, Verdict};
use tools::{Case, Engine};

/// Pairs measured for each claim.
const ROUNDS: usize = 7;

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
    let rounds =
        std::env::args().nth(1).map_or(Ok(ROUNDS), |text| text.parse()).context("usage: bench [ROUNDS]")?;
    let folder = tempfile::TempDir::new_in("target").context("run this from the repository")?;
    println!("{}", tools::machine()?);
    println!("{rounds} alternated pairs a line; ratio = virtbench / fio\n");
    println!(
        "{:<44} {:>10} {:>10} {:>8} {:>15}  {:<9}",
        "figure", "virtbench", "fio", "ratio", "range", "promise"
    );
    let mut verdicts = Vec::new();
    for case in [Case::null(1), Case::null(32)] {
        verdicts.extend(compare(&case, rounds, &[Claim::iops(2.0)])?);
    }
    let file = folder.path().join("bench.img");
    tools::make_file(&file)?;
    for outstanding in [1, 32] {
        let case = Case::file(&file, outstanding);
        let claims = [Claim::iops(0.98), Claim::cpu_per_io(), Claim::mean_latency()];
        verdicts.extend(compare(&case, rounds, &claims)?);
    }
    println!();
    verdicts.extend(footprint::check(folder.path())?);
    Ok(verdicts.iter().all(|verdict| *verdict == Verdict::Kept))
}

/// Measures a case with both tools, in turns, and holds the claims against the pairs.
fn compare(case: &Case, rounds: usize, claims: &[Claim]) -> Result<Vec<Verdict>> {
    let mut pairs = Vec::new();
    for round in 0..rounds {
        // Who goes first alternates, so that neither always finds the device as the other left it.
        let (ours, theirs);
        if round % 2 == 0 {
            ours = case.measure(Engine::Virtbench)?;
            theirs = case.measure(Engine::Fio)?;
        } else {
            theirs = case.measure(Engine::Fio)?;
            ours = case.measure(Engine::Virtbench)?;
        }
        pairs.push((ours, theirs));
    }
    Ok(claims.iter().map(|claim| claim.hold(&case.name, &pairs)).collect())
}

/// Where the release build of the command is.
fn virtbench() -> &'static Path {
    Path::new("target/release/virtbench")
}
