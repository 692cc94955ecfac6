//! The load generator beside fio: a null target, a file past the page cache, NBD, vhost-user.

use std::path::Path;

use anyhow::Result;

use crate::pairs::{Claim, Sample, Verdict, hold_floor};
use crate::servers;
use crate::tools::{self, Case, Engine, Target};

/// Measures each case with both in turns, `rounds` times, and holds its claims against the pairs.
pub fn check(rounds: usize, folder: &Path) -> Result<Vec<Verdict>> {
    println!("{rounds} alternated pairs a line; ratio = virtbench / fio\n");
    println!(
        "{:<56} {:>10} {:>10} {:>8} {:>15}  {:<9}",
        "figure", "virtbench", "fio", "ratio", "range", "promise"
    );
    let (file, nbd, vhost_user) = (folder.join("load.img"), folder.join("nbd"), folder.join("vhost-user"));
    tools::make_file(&file)?;
    let _nbdkit = servers::nbdkit_memory(&nbd)?;
    let _storage_daemon = servers::vhost_user_null(&vhost_user)?;
    let (file, nbd) = (Target::File(file), Target::Nbd(servers::uri(&nbd)));
    let at_fios_level = || vec![Claim::iops(0.98), Claim::cpu_per_io(), Claim::mean_latency()];
    let rate_and_cpu = || vec![Claim::iops(0.98), Claim::cpu_per_io()];
    let beyond_fio = || vec![Claim::iops(1.0), Claim::cpu_per_io()];
    let table = [
        (Case::new(&Target::Null, 1), vec![Claim::iops(2.0)]),
        (Case::new(&Target::Null, 32), vec![Claim::iops(2.0)]),
        (Case::new(&Target::Null, 32).reading_each(), vec![Claim::iops(1.0)]),
        (Case::new(&file, 1), at_fios_level()),
        (Case::new(&file, 8), rate_and_cpu()),
        (Case::new(&file, 32), rate_and_cpu()),
        (Case::new(&file, 32).unbatched(), vec![Claim::mean_latency()]),
        (Case::new(&file, 128), rate_and_cpu()),
        (Case::new(&file, 32).workers(2), rate_and_cpu()),
        (Case::new(&nbd, 1), beyond_fio()),
        (Case::new(&nbd, 32), beyond_fio()),
    ];
    let mut verdicts = Vec::new();
    for (case, claims) in &table {
        verdicts.extend(compare(case, rounds, claims)?);
    }
    let alone = Case::new(&Target::VhostUser(vhost_user), 32);
    let samples: Vec<Sample> =
        (0..rounds).map(|_| alone.measure(Engine::Virtbench)).collect::<Result<_>>()?;
    verdicts.push(hold_floor(&alone.name, &samples, 500e3));
    Ok(verdicts)
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
