use super::*;

/// What the search finds of a database whose users each wait `think` seconds for every `work` seconds of its processors.
fn search(most: u32, database: impl Fn(u32) -> (f64, Option<f64>)) -> (UsersFound, Vec<u32>) {
    let mut search = UsersSearch::new(most);
    let mut tried = Vec::new();
    while let Some(users) = search.next_users() {
        assert!(users <= most && !tried.contains(&users), "{users} after {tried:?}");
        tried.push(users);
        assert!(tried.len() < 40, "{tried:?}");
        let (per_second, idle_percent) = database(users);
        search.observe(UsersPoint { users, per_second, idle_percent });
    }
    (search.found().expect("something was tried"), tried)
}

/// Two processors, 5 ms of work and 15 ms of waiting a transaction.
fn two_processors(users: u32) -> (f64, Option<f64>) {
    let per_second = (f64::from(users) / 0.020).min(2.0 / 0.005);
    (per_second, Some(100.0 * (1.0 - per_second * 0.005 / 2.0)))
}

#[test]
fn the_least_number_of_users_that_saturates_is_found() {
    let (found, tried) = search(256, two_processors);
    assert_eq!((found.point.users, found.end), (8, UsersEnd::Saturated), "{tried:?}");
    assert!(tried.len() <= 8, "{tried:?}");
}

#[test]
fn what_stops_growing_with_processors_left_has_another_limit() {
    let disk = |users: u32| ((f64::from(users) * 10.0).min(50.0), Some(60.0));
    let (found, tried) = search(256, disk);
    assert_eq!((found.point.users, found.end), (6, UsersEnd::NoGrowth), "{tried:?}");
}

#[test]
fn the_most_users_are_not_exceeded_and_that_is_said() {
    let (found, tried) = search(20, |users| (f64::from(users), None));
    assert_eq!((found.point.users, found.end), (20, UsersEnd::MostUsers));
    assert_eq!(tried, [1, 2, 4, 8, 16, 20]);
    let (found, tried) = search(1, |_| (5.0, Some(1.0)));
    assert_eq!((found.point.users, found.end, tried.len()), (1, UsersEnd::Saturated, 1));
}

#[test]
fn throughput_that_falls_with_more_users_has_its_best_found_between_doublings() {
    // Users that wait for each other's locks.
    let contended = |users: u32| {
        let users = f64::from(users);
        (100.0 * users / (1.0 + (users / 6.0).powi(2)), Some(20.0))
    };
    let (found, tried) = search(256, contended);
    assert!((5..=7).contains(&found.point.users), "{found:?} {tried:?}");
    assert!(tried.len() <= 8, "{tried:?}");
}

#[test]
fn a_database_that_does_nothing_ends_the_search() {
    let (found, tried) = search(256, |_| (0.0, None));
    assert_eq!((found.point.users, found.end), (1, UsersEnd::NoGrowth));
    assert_eq!(tried, [1, 2]);
}
