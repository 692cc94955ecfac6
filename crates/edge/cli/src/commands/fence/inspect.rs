//! `virtbench fence inspect`

use virtbench_fence_daemon::admin::{CacheFacts, Inspected, inspect};
use virtbench_fence_daemon::config::Config;
use virtbench_units::format_bytes;

use super::pools::{self, chosen, failure, load, within, worst_of};
use crate::args::fence::InspectArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::say;
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// Says what there is; what should not be decides the exit code.
pub fn execute(args: &InspectArgs) -> Outcome {
    interrupt::end_at_once("the devices are as they were: an inspection only reads");
    let pools = load(&args.config)?;
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for fence in chosen(&pools, &args.only)? {
        match looked_at(fence, args.data) {
            Ok(found) => {
                failures.extend(judged(&found).map(|failure| within(fence, failure)));
                all.push((fence.pool.clone(), found));
            }
            Err(failure) => failures.push(within(fence, failure)),
        }
    }
    if args.json && !all.is_empty() {
        say!("{}", pools::json(all)?);
    } else {
        for (pool, found) in &all {
            pool.iter().for_each(|pool| say!("pool {pool}"));
            print(found);
        }
    }
    worst_of(failures).map_or(Ok(()), Err)
}

fn looked_at(fence: &Config, data: bool) -> Result<Inspected, Failure> {
    let bar = progress::spinner("reading the cache's metadata");
    let found = inspect(fence, data, &mut |checked, blocks| {
        if bar.length() != Some(blocks) {
            progress::lengthen(&bar, blocks, "comparing blocks with their checksums");
        }
        bar.set_position(checked);
    });
    bar.finish_and_clear();
    found.map_err(failure)
}

/// What should not be.
fn judged(found: &Inspected) -> Option<Failure> {
    let faults = found.faults.len() as u64 + found.more_faults;
    if faults > 0 {
        let first = &found.faults[0];
        let what = format!(
            "the cache has {faults} faults, the first: {first}: keep the devices as they are and copy them \
                            before anything else; `fence drain --force` brings to the disks what can still be read, and names the rest"
        );
        return Some(Failure::message(Kind::Inconsistent, what));
    }
    found.changed.first().map(|changed| Failure::message(Kind::Target, changed.clone()))
}

fn print(found: &Inspected) {
    if let Some(home) = &found.home {
        say!("{}: {}", home.device, if home.uuid.is_empty() { "no label of a fence" } else { &home.uuid });
        for disk in &home.disks {
            let (size, at) = (format_bytes(disk.size_bytes), format_bytes(disk.offset_bytes));
            say!("  disk {}: {size} at {at}", disk.name);
        }
    }
    if let Some(cache) = &found.cache {
        print_cache(cache);
    }
    for changed in &found.changed {
        say!("not as configured: {changed}");
    }
    for fault in &found.faults {
        say!("fault: {fault}");
    }
    if found.more_faults > 0 {
        say!("{} faults more", found.more_faults);
    }
    if found.faults.is_empty() && found.cache.is_some() {
        say!("consistent");
    }
}

fn print_cache(cache: &CacheFacts) {
    say!("{}: cache {}, start {}", cache.device, cache.uuid, cache.sequence);
    if cache.superblocks.contains(&false) {
        say!("  one superblock was torn: the next start writes it again");
    }
    let mut table = TextTable::new(2, &[&[left(24)][..], &[right(10); 7]].concat());
    let heading = ["all", "used", "dirty", "free", "retiring", "generation", "commit"].map(str::to_owned);
    table.row(std::iter::once("partition, 4 KiB blocks".to_owned()).chain(heading));
    for part in &cache.partitions {
        let blocks =
            [part.blocks, part.used, part.dirty, part.free, part.retiring].map(|count| count.to_string());
        let numbers = [part.generation, part.commit].map(|number| number.to_string());
        table.row(std::iter::once(part.disks.join(",")).chain(blocks).chain(numbers));
    }
    say!("{table}");
    for part in &cache.partitions {
        let disks = part.disks.join(",");
        if part.last_commit > part.commit {
            say!("  {disks}: commit {} was cut off", part.last_commit);
        }
        if part.checked > 0 {
            say!("  {disks}: {} blocks of data compared with their checksums", part.checked);
        }
    }
}
