//! Stock-Level ([TPC-C 5.11], clause 2.8.2).

use super::customer::missing;
use crate::call::{bare, keyed};
use crate::done::TransactionDone;
use crate::fault::Fault;
use crate::input::StockLevel;
use crate::session::Session;
use crate::statement::One;

/// Orders whose items are looked at.
const RECENT: u32 = 20;

/// Two exchanges.
pub async fn perform(session: &mut Session, input: StockLevel) -> Result<TransactionDone, Fault> {
    let StockLevel { warehouse, district, threshold } = input;
    let known =
        session.run(&[bare(One::Begin), keyed(One::NextOrder, [warehouse, district])]).await?.concat();
    let next = known.first().and_then(|row| row.first()).ok_or_else(|| missing("a district"))?.key();
    let first = next.saturating_sub(RECENT);
    let short = keyed(One::ShortItems, [warehouse, district, next, first, warehouse, threshold]);
    session.run(&[short, bare(One::Commit)]).await?;
    Ok(TransactionDone::default())
}
