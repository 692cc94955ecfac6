//! An open-loop load as the engine applies it, operation by operation.

use virtbench_workload::{Direction, LoadSpec, NextOp, Pace, Rate, Stream, TraceAction, TraceOp};

use super::Client;

/// The operations of a load with a rate, for so many nanoseconds: those that a worker of the engine draws from the same
/// seed, at the same moments. Nothing where it has no rate, several workers, or pauses within.
#[must_use]
pub fn open_loop(load: &LoadSpec, length_ns: u64) -> Option<Vec<TraceOp>> {
    let (Some(mut times), 1) = (load.arrivals(0), load.workers) else { return None };
    let mut stream = Stream::new(&load.access, load.region_bytes, load.seed, 0, 1);
    let mut ops = Vec::new();
    loop {
        let time_ns = times.next_ns();
        if time_ns >= length_ns {
            return Some(ops);
        }
        let NextOp::Issue(op) = stream.next_step() else { return None };
        let action = match op.direction {
            Direction::Read => TraceAction::Read,
            Direction::Write => TraceAction::Write,
            Direction::Trim | Direction::Flush => return None,
        };
        ops.push(TraceOp { time_ns, offset: op.offset, len: op.len, action, line: 0 });
    }
}

/// A client that applies such a load after `warm_up_ns` of the same accesses at `warm_up_rate` a second, drawn from another
/// seed.
#[must_use]
pub fn open_client(load: &LoadSpec, warm_up_ns: u64, warm_up_rate: f64) -> Option<Client> {
    let rate = Some(Rate { per_second: warm_up_rate, ..load.rate? });
    let mut ops =
        open_loop(&LoadSpec { seed: !load.seed, arrival_seed: None, rate, ..load.clone() }, warm_up_ns)?;
    let length_ns = load.ramp_ns.saturating_add(load.time_ns);
    ops.extend(
        open_loop(load, length_ns)?
            .into_iter()
            .map(|op| TraceOp { time_ns: op.time_ns.saturating_add(warm_up_ns), ..op }),
    );
    Some(Client::Trace { ops: ops.into(), pace: Pace::Speed(1.0), outstanding: load.outstanding })
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::{AccessLine, AccessSpec, Arrivals};

    #[test]
    fn a_load_arrives_at_its_rate_and_one_without_has_no_operations() {
        let closed = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 30);
        assert!(open_loop(&closed, 1_000_000_000).is_none());
        let rate = Some(Rate { per_second: 1000.0, arrivals: Arrivals::Poisson });
        let open = LoadSpec { rate, ..closed };
        let ops = open_loop(&open, 20_000_000_000).unwrap();
        assert!(ops.len().abs_diff(20_000) < 700, "{}", ops.len());
        assert!(ops.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
        let reads = ops.iter().filter(|op| op.action == TraceAction::Read).count();
        assert!(reads.abs_diff(14_000) < 900, "{reads}");
        assert_ne!(ops, open_loop(&LoadSpec { seed: 2, ..open }, 20_000_000_000).unwrap());
    }
}
