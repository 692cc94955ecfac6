//! Independent pieces of work on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::interrupt;

/// Does `work` for every item on up to `threads` threads. The results stand in the order of the items,
/// whichever thread did them; `None` is an item that an interrupt kept from being begun.
pub fn in_order<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    done: impl Fn() + Sync,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = items.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while let Some(index) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < items.len())
                {
                    if interrupt::flag().load(Ordering::Relaxed) {
                        break;
                    }
                    let result = work(&items[index]);
                    if let Ok(mut place) = results[index].lock() {
                        *place = Some(result);
                    }
                    done();
                }
            });
        }
    });
    results.into_iter().map(|place| place.into_inner().ok().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<u64> = (0..100).collect();
        for threads in [0, 1, 7, 200] {
            let doubled = in_order(&items, threads, || {}, |item| item * 2);
            assert!(doubled.iter().zip(0..).all(|(got, item)| *got == Some(item * 2)));
        }
        assert!(in_order(&[], 4, || {}, |item: &u8| *item).is_empty());
    }
}
