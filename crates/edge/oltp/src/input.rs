//! What a user enters for each transaction ([TPC-C 5.11], clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1 and 2.8.1).

use std::collections::VecDeque;

use virtbench_record::OltpKind;

use crate::draws::{Constants, DISTRICTS, Draws, last_name};

/// The number of no item: what makes a New-Order roll back.
pub const NO_ITEM: u32 = 0;

/// A customer, as users name one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// By number.
    Number(u32),
    /// By last name.
    Name(String),
}

/// A line of a New-Order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// The item.
    pub item: u32,
    /// The warehouse that has it.
    pub supply: u32,
    /// How many.
    pub quantity: u32,
}

/// What is entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Of a New-Order.
    NewOrder(NewOrder),
    /// Of a Payment.
    Payment(Payment),
    /// Of an Order-Status.
    OrderStatus(OrderStatus),
    /// Of a Delivery.
    Delivery(Delivery),
    /// Of a Stock-Level.
    StockLevel(StockLevel),
}

/// Of a New-Order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct NewOrder {
    pub warehouse: u32,
    pub district: u32,
    pub customer: u32,
    /// 5 to 15; the last is [`NO_ITEM`] in one of a hundred.
    pub lines: Vec<Line>,
}

/// Of a Payment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Payment {
    pub warehouse: u32,
    pub district: u32,
    pub customer_warehouse: u32,
    pub customer_district: u32,
    pub customer: Who,
    /// 100 to 500,000.
    pub cents: u32,
}

/// Of an Order-Status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct OrderStatus {
    pub warehouse: u32,
    pub district: u32,
    pub customer: Who,
}

/// Of a Delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Delivery {
    pub warehouse: u32,
    pub carrier: u32,
}

/// Of a Stock-Level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StockLevel {
    pub warehouse: u32,
    pub district: u32,
    /// Fewer than this, 10 to 20, is short.
    pub threshold: u32,
}

/// A user at a terminal, which belongs to a warehouse and, for Stock-Level, a district.
#[derive(Debug, Clone)]
pub struct Terminal {
    draws: Draws,
    constants: Constants,
    warehouses: u32,
    warehouse: u32,
    district: u32,
}

impl Terminal {
    /// The terminal of user number `user`, from 0; users take the warehouses in turn.
    pub fn new(seed: u64, user: u32, warehouses: u32, constants: Constants) -> Self {
        let (warehouse, round) = (user % warehouses + 1, user / warehouses);
        let draws = Draws::new(seed, u64::from(user) + 1);
        Self { draws, constants, warehouses, warehouse, district: round % DISTRICTS + 1 }
    }

    /// What is entered next.
    pub fn enter(&mut self, kind: OltpKind) -> Input {
        let warehouse = self.warehouse;
        match kind {
            OltpKind::NewOrder => Input::NewOrder(self.new_order()),
            OltpKind::Payment => Input::Payment(self.payment()),
            OltpKind::OrderStatus => {
                let district = self.any_district();
                Input::OrderStatus(OrderStatus { warehouse, district, customer: self.who() })
            }
            OltpKind::Delivery => Input::Delivery(Delivery { warehouse, carrier: self.draws.between(1, 10) }),
            OltpKind::StockLevel => {
                let threshold = self.draws.between(10, 20);
                Input::StockLevel(StockLevel { warehouse, district: self.district, threshold })
            }
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let (district, customer) = (self.any_district(), self.draws.customer(self.constants));
        let (count, fails) = (self.draws.between(5, 15), self.draws.percent(1));
        let mut lines: Vec<Line> = Vec::with_capacity(count as usize);
        while lines.len() < count as usize {
            let item = self.draws.item(self.constants);
            // An item stands in one line alone, so that a line is found by its item.
            if lines.iter().any(|line| line.item == item) {
                continue;
            }
            let supply = if self.draws.percent(1) { self.other_warehouse() } else { self.warehouse };
            lines.push(Line { item, supply, quantity: self.draws.between(1, 10) });
        }
        if let Some(last) = lines.last_mut().filter(|_| fails) {
            last.item = NO_ITEM;
        }
        NewOrder { warehouse: self.warehouse, district, customer, lines }
    }

    fn payment(&mut self) -> Payment {
        let district = self.any_district();
        let is_remote = self.warehouses > 1 && self.draws.percent(15);
        let (customer_warehouse, customer_district) = if is_remote {
            (self.other_warehouse(), self.any_district())
        } else {
            (self.warehouse, district)
        };
        let customer = self.who();
        let cents = self.draws.between(100, 500_000);
        Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            cents,
        }
    }

    fn who(&mut self) -> Who {
        if self.draws.percent(60) {
            Who::Name(last_name(self.draws.last_name(self.constants)))
        } else {
            Who::Number(self.draws.customer(self.constants))
        }
    }

    fn any_district(&mut self) -> u32 {
        self.draws.between(1, DISTRICTS)
    }

    /// Another warehouse than this one, where there is one.
    fn other_warehouse(&mut self) -> u32 {
        if self.warehouses == 1 {
            return 1;
        }
        let other = self.draws.between(1, self.warehouses - 1);
        if other >= self.warehouse { other + 1 } else { other }
    }
}

/// A Delivery that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// What was entered.
    pub delivery: Delivery,
    /// When it was put into the queue, in nanoseconds.
    pub since_ns: u64,
}

/// The queue.
#[derive(Debug)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    most: usize,
    longest: usize,
}

impl Queue {
    /// An empty queue for `most` Deliveries.
    pub fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), most, longest: 0 }
    }

    /// Puts one at the end; whether there was room.
    pub fn offer(&mut self, delivery: Delivery, now_ns: u64) -> bool {
        let has_room = self.waiting.len() < self.most;
        if has_room {
            self.waiting.push_back(Waiting { delivery, since_ns: now_ns });
            self.longest = self.longest.max(self.waiting.len());
        }
        has_room
    }

    /// Takes the one that has waited longest.
    pub fn take(&mut self) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    /// The most that have waited since the queue was made, or since this was last called.
    pub fn take_longest(&mut self) -> usize {
        std::mem::replace(&mut self.longest, self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(warehouses: u32) -> Terminal {
        Terminal::new(5, 3, warehouses, Constants::of_population(5).of_run(5))
    }

    /// Whether a share of `count` is that of the specification, within five standard deviations.
    fn is_share(found: usize, count: usize, share: f64) -> bool {
        let deviation = (count as f64 * share * (1.0 - share)).sqrt();
        (found as f64 - count as f64 * share).abs() < 5.0 * deviation
    }

    #[test]
    fn new_orders_have_the_shares_of_the_specification() {
        let mut terminal = terminal(10);
        let orders: Vec<NewOrder> = (0..20_000).map(|_| terminal.new_order()).collect();
        let lines: Vec<Line> = orders.iter().flat_map(|order| order.lines.clone()).collect();
        let remote = lines.iter().filter(|line| line.supply != 4).count();
        let failing =
            orders.iter().filter(|order| order.lines.iter().any(|line| line.item == NO_ITEM)).count();
        assert!(is_share(remote, lines.len(), 0.01), "{remote} of {}", lines.len());
        assert!(is_share(failing, orders.len(), 0.01), "{failing}");
        let mean = lines.len() as f64 / orders.len() as f64;
        assert!(
            (9.9..10.1).contains(&mean) && orders.iter().all(|order| (5..=15).contains(&order.lines.len()))
        );
        assert!(
            lines.iter().all(|line| (1..=10).contains(&line.supply) && (1..=10).contains(&line.quantity))
        );
    }

    #[test]
    fn payments_have_the_shares_of_the_specification() {
        let mut one = terminal(10);
        let payments: Vec<Payment> = (0..20_000).map(|_| one.payment()).collect();
        let remote = payments.iter().filter(|payment| payment.customer_warehouse != 4).count();
        let named = payments.iter().filter(|payment| matches!(payment.customer, Who::Name(_))).count();
        assert!(is_share(remote, payments.len(), 0.15), "{remote}");
        assert!(is_share(named, payments.len(), 0.6), "{named}");
        let mut alone = terminal(1);
        assert!((0..1000).all(|_| alone.payment().customer_warehouse == 1));
    }

    #[test]
    fn users_take_warehouses_in_turn_and_districts_of_stock_level_in_rounds() {
        let constants = Constants::of_population(1);
        let place = |user| {
            let terminal = Terminal::new(1, user, 3, constants);
            (terminal.warehouse, terminal.district)
        };
        assert_eq!([0, 1, 2, 3, 29, 30].map(place), [(1, 1), (2, 1), (3, 1), (1, 2), (3, 10), (1, 1)]);
    }

    #[test]
    fn the_first_in_is_the_first_out_and_the_queue_is_bounded() {
        let mut queue = Queue::new(2);
        let delivery = |warehouse| Delivery { warehouse, carrier: 1 };
        assert!(
            queue.offer(delivery(1), 10) && queue.offer(delivery(2), 20) && !queue.offer(delivery(3), 30)
        );
        assert_eq!(queue.take_longest(), 2);
        assert_eq!(queue.take(), Some(Waiting { delivery: delivery(1), since_ns: 10 }));
        assert_eq!(queue.take().map(|waiting| waiting.since_ns), Some(20));
        assert_eq!((queue.take(), queue.take_longest(), queue.take_longest()), (None, 2, 0));
    }
}
