//! Removing what is ours, and nothing else.

use crate::mark::{Mark, Owner, RunId};

/// A thing that may carry a mark, wherever it lies.
pub trait Marked {
    /// What can fail.
    type Error;

    /// What stands where a mark would, read anew from the thing itself; nothing where there is no such place.
    ///
    /// # Errors
    /// It cannot be read. The thing is not removed then.
    fn written(&mut self) -> Result<Option<String>, Self::Error>;

    /// Whether it lies on this very machine, so that no other one made it, nor a clone of this one.
    fn is_here(&self) -> bool {
        false
    }

    /// Removes it.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&mut self) -> Result<(), Self::Error>;
}

/// What became of a thing that was to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is gone.
    Removed(Mark),
    /// It carries no mark of virtbench's: it stays.
    Foreign,
    /// It is ours, and of a run that may still need it: it stays.
    Needed(Mark),
}

/// Removes a thing if virtbench made it and its maker has ended.
///
/// # Errors
/// As [`Marked`]'s.
pub fn remove_left_over<T: Marked>(thing: &mut T) -> Result<Removal, T::Error> {
    let is_here = thing.is_here();
    remove_if(thing, |mark| if is_here { mark.owner_here() } else { mark.owner() } == Owner::Gone)
}

/// Removes a thing if virtbench made it in this run, which the caller goes on with or ends.
///
/// # Errors
/// As [`Marked`]'s.
pub fn remove_of_run<T: Marked>(thing: &mut T, run: &RunId) -> Result<Removal, T::Error> {
    remove_if(thing, |mark| mark.run == *run)
}

fn remove_if<T: Marked>(thing: &mut T, may: impl Fn(&Mark) -> bool) -> Result<Removal, T::Error> {
    let Some(mark) = thing.written()?.as_deref().and_then(Mark::parse) else {
        return Ok(Removal::Foreign);
    };
    if !may(&mark) {
        return Ok(Removal::Needed(mark));
    }
    thing.remove()?;
    Ok(Removal::Removed(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing {
        written: Result<Option<String>, &'static str>,
        removed: bool,
    }

    impl Marked for Thing {
        type Error = &'static str;

        fn written(&mut self) -> Result<Option<String>, &'static str> {
            self.written.clone()
        }

        fn remove(&mut self) -> Result<(), &'static str> {
            self.removed = true;
            Ok(())
        }
    }

    fn thing(written: Option<String>) -> Thing {
        Thing { written: Ok(written), removed: false }
    }

    #[test]
    fn only_what_is_marked_and_left_over_is_removed() {
        let mine = Mark::new(RunId::new_random(), "disk");
        let mut gone = mine.clone();
        gone.maker.began += 1;
        for (written, expected) in [
            (None, Removal::Foreign),
            (Some("virtbench".to_owned()), Removal::Foreign),
            (Some(mine.to_string()), Removal::Needed(mine.clone())),
            (Some(gone.to_string()), Removal::Removed(gone.clone())),
        ] {
            let mut thing = thing(written);
            assert_eq!(remove_left_over(&mut thing), Ok(expected.clone()));
            assert_eq!(thing.removed, matches!(expected, Removal::Removed(_)));
        }
    }

    #[test]
    fn a_run_removes_its_own() {
        let (mine, other) = (RunId::new_random(), RunId::new_random());
        let mark = Mark::new(mine.clone(), "disk");
        assert!(matches!(remove_of_run(&mut thing(Some(mark.to_string())), &other), Ok(Removal::Needed(_))));
        assert!(matches!(remove_of_run(&mut thing(Some(mark.to_string())), &mine), Ok(Removal::Removed(_))));
        assert_eq!(remove_of_run(&mut thing(None), &mine), Ok(Removal::Foreign));
    }

    #[test]
    fn what_cannot_be_read_stays() {
        let mut thing = Thing { written: Err("no connection"), removed: false };
        assert_eq!(remove_left_over(&mut thing), Err("no connection"));
        assert!(!thing.removed);
    }
}
