//! A moment as people write it, in UTC.

/// A moment's parts.
pub struct Moment {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u64,
    /// The day of the month, from 1.
    pub day: u64,
    /// The day of the week, from Thursday, as 1970 began with one.
    pub weekday: u64,
    /// Hours of the day.
    pub hour: u64,
    /// Minutes of the hour.
    pub minute: u64,
    /// Seconds of the minute.
    pub second: u64,
}

impl Moment {
    /// So many seconds after 1970 began. Civil date from days: Hinnant, "chrono-Compatible Low-Level Date
    /// Algorithms".
    pub fn from_unix(unix_s: u64) -> Self {
        let (days, second) = (unix_s / 86_400, unix_s % 86_400);
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: era * 400 + year_of_era + u64::from(month < 3),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            weekday: days % 7,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}
