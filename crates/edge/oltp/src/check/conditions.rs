//! Conditions that look at each order and each customer ([TPC-C 5.11], clause 3.3.2, numbers 5 to 12), each a query for the rows that
//! break it. A value that is missing breaks a condition: nothing is equal to NULL, and a sum over NULL is NULL.
//!
//! Condition 11 holds of a new population alone, before the first Delivery, and is left out.

/// A condition with its query.
pub struct Condition {
    /// Its number in clause 3.3.2.
    pub number: u32,
    /// What should hold.
    pub words: &'static str,
    /// Names of the columns of a row that breaks it.
    pub columns: &'static [&'static str],
    /// Rows that break it, five at most.
    pub query: &'static str,
}

/// The seven.
pub const CONDITIONS: [Condition; 7] = [
    Condition {
        number: 5,
        words: "O_CARRIER_ID is null where there is a row of NEW-ORDER, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "o_carrier_id"],
        query: "SELECT o_w_id, o_d_id, o_id, o_carrier_id FROM @orders LEFT JOIN @new_order \
                ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 6,
        words: "O_OL_CNT = rows of ORDER-LINE of the order",
        columns: &["o_w_id", "o_d_id", "o_id", "o_ol_cnt", "rows"],
        query: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, counted FROM @orders LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS counted FROM @order_line \
                GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE NOT COALESCE(counted = o_ol_cnt, FALSE) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 7,
        words: "OL_DELIVERY_D is null where O_CARRIER_ID is, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "ol_number"],
        query: "SELECT o_w_id, o_d_id, o_id, ol_number FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (ol_delivery_d IS NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 8,
        words: "W_YTD = sum(H_AMOUNT)",
        columns: &["w_id", "w_ytd", "sum(h_amount)"],
        query: "SELECT w_id, w_ytd, total FROM @warehouse LEFT JOIN \
                (SELECT h_w_id, CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS total \
                FROM @history GROUP BY h_w_id) h ON h_w_id = w_id \
                WHERE NOT COALESCE(w_ytd = total, FALSE) ORDER BY w_id LIMIT 5",
    },
    Condition {
        number: 9,
        words: "D_YTD = sum(H_AMOUNT)",
        columns: &["d_w_id", "d_id", "d_ytd", "sum(h_amount)"],
        query: "SELECT d_w_id, d_id, d_ytd, total FROM @district LEFT JOIN \
                (SELECT h_w_id, h_d_id, CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS total \
                FROM @history GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id \
                WHERE NOT COALESCE(d_ytd = total, FALSE) ORDER BY d_w_id, d_id LIMIT 5",
    },
    Condition {
        number: 10,
        words: "C_BALANCE = sum(OL_AMOUNT of what is delivered) - sum(H_AMOUNT)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "delivered", "paid"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM @customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, COUNT(*) AS counted, \
                CASE WHEN COUNT(ol_amount) = COUNT(*) THEN SUM(ol_amount) END AS delivered \
                FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
                CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS paid FROM @history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE NOT COALESCE(c_balance = CASE WHEN counted IS NULL THEN 0 ELSE delivered END - paid, FALSE) \
                ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
    Condition {
        number: 12,
        words: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of what is delivered)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "delivered"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM @customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, COUNT(*) AS counted, \
                CASE WHEN COUNT(ol_amount) = COUNT(*) THEN SUM(ol_amount) END AS delivered \
                FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE NOT COALESCE(c_balance + c_ytd_payment = CASE WHEN counted IS NULL THEN 0 ELSE delivered END, FALSE) \
                ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
];
