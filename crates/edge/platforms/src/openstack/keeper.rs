//! An image without bytes that says now and then that its run lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use virtbench_lab::now_s;
use virtbench_mark::RunId;
use virtbench_openstack::{Limit, OpenStack, Operation};

use super::failure::failure;
use super::owned::{KEEPER, KEY, Owned};
use crate::failure::Failure;
use crate::keeper::Keeper;

/// How long a sign, or the end of the image, may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Makes the image.
pub(super) fn keeper(
    cloud: &Arc<OpenStack>,
    (label, run): (&str, &RunId),
    limit: Limit,
) -> Result<Keeper, Failure> {
    let mut owned = Owned::new(run, KEEPER, &format!("{label}.shared"), None);
    let image = cloud.make_empty_image(&owned.name, &owned.metadata(), limit).map_err(failure)?;
    let (signs, removes, signed) = (Arc::clone(cloud), Arc::clone(cloud), image.clone());
    let soon = || Limit::at(Instant::now() + LIMIT);
    let sign = move || {
        owned.sign.seen_s = now_s();
        signs.write_on_image(&signed, KEY, &owned.text(), soon()).map_err(failure)
    };
    Keeper::start(sign, move || {
        let (_, removed) = removes.perform("", &Operation::DeleteImage { image: &image }, soon());
        removed.map(drop).map_err(failure)
    })
}
