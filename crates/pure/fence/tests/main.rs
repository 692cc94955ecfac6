//! The tests of this crate from outside, one program: it is linked once.

mod crash;
mod exhaustive;
mod flips;
mod inspect;
mod invent;
mod invent_guests;
mod neighbours;
mod rot;
mod start;
mod steady;
mod torn;
mod work;
mod world;
