//! A connection to MariaDB.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, OptsBuilder, Params, SslOpts};

use crate::address::{Connect, Endpoint, Manner, isolation_name};
use crate::error::{Fault, FaultKind, of_mariadb};
use crate::schema::Schema;
use crate::statement::{Call, One, Param, Row, STATEMENTS, Statement, Value, decimal_of_text, decimal_text};
use crate::tls::{Tls, TlsMode};

/// For connecting and logging in.
const CONNECT_SECONDS: u64 = 10;

/// What statements and rows mean, whatever the server's default is.
const SQL_MODE: &str = "STRICT_TRANS_TABLES,STRICT_ALL_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
                        NO_ENGINE_SUBSTITUTION";

/// A connection with the statements that it has prepared.
pub struct MariaDb {
    connection: Conn,
    /// Whether statements are prepared once; each is sent with its values in its text otherwise.
    keeps: bool,
    prepared: Vec<Option<mysql_async::Statement>>,
    /// Whether every statement is in a transaction, so that none has to begin one.
    in_transactions: bool,
}

impl MariaDb {
    /// Connects and logs in.
    pub async fn open(connect: &Connect, manner: Manner) -> Result<Self, Fault> {
        let Connect { address, password } = connect;
        let options = OptsBuilder::default()
            .user(Some(&address.user))
            .pass(password.as_deref())
            .db_name(Some(&address.database))
            .prefer_socket(false)
            .stmt_cache_size(STATEMENTS + 16)
            .init(vec![
                format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", isolation_name(manner.isolation)),
                format!("SET SESSION sql_mode = '{SQL_MODE}'"),
                // A user who thinks is not to be thrown out for that.
                "SET SESSION wait_timeout = 31536000 /*M!100300 , idle_transaction_timeout = 0 */".to_owned(),
            ])
            .ssl_opts(
                encrypted(&address.tls)
                    .map_err(|error| Fault::new(FaultKind::Encryption, error.to_string()))?,
            );
        let options = match &address.endpoint {
            Endpoint::Tcp(host, port) => options.ip_or_hostname(host).tcp_port(*port),
            Endpoint::Unix(path, _) => options.socket(Some(path.to_string_lossy())),
        };
        let limit = Duration::from_secs(CONNECT_SECONDS);
        let opened = tokio::time::timeout(limit, Conn::new(options)).await;
        let connection = opened.map_err(|_| Fault::new(FaultKind::Refused, "no answer"))?;
        let connection = connection.map_err(|error| match fault(&error) {
            Fault { kind: FaultKind::Gone, words } => Fault { kind: FaultKind::Refused, words },
            fault => fault,
        })?;
        Ok(Self { connection, keeps: manner.keeps, prepared: vec![None; STATEMENTS], in_transactions: false })
    }

    /// Sends each statement once the one before is answered.
    pub async fn run(&mut self, calls: &[Call<'_>], schema: &Schema) -> Result<Vec<Vec<Row>>, Fault> {
        let mut done = Vec::with_capacity(calls.len());
        for call in calls {
            done.push(self.answer(call, schema).await.map_err(|error| fault(&error))?);
        }
        Ok(done)
    }

    async fn answer(
        &mut self,
        Call { statement, params }: &Call<'_>,
        schema: &Schema,
    ) -> Result<Vec<Row>, Error> {
        let Self { connection, keeps, prepared, in_transactions } = self;
        if *statement == Statement::One(One::Begin) {
            // An exchange less for each transaction.
            if !*in_transactions {
                connection.query_drop("SET SESSION autocommit = 0").await?;
                *in_transactions = true;
            }
            return Ok(Vec::new());
        }
        if statement.is_bracket() {
            return connection.query_drop(statement.text()).await.map(|()| Vec::new());
        }
        if !*keeps {
            let text = with_values(&schema.qualified(&statement.text()), params);
            let rows: Vec<mysql_async::Row> = connection.query(text).await?;
            return Ok(rows.into_iter().map(values).collect());
        }
        let slot = &mut prepared[statement.number()];
        let prepared = match slot {
            Some(prepared) => prepared,
            None => slot.insert(connection.prep(schema.qualified(&statement.text())).await?),
        };
        let params = Params::Positional(params.iter().map(parameter).collect());
        let rows: Vec<mysql_async::Row> = connection.exec(&*prepared, params).await?;
        Ok(rows.into_iter().map(values).collect())
    }

    /// Runs a statement that is not kept.
    pub async fn query(&mut self, text: &str) -> Result<Vec<Row>, Fault> {
        let rows: Result<Vec<mysql_async::Row>, Error> = self.connection.query(text).await;
        Ok(rows.map_err(|error| fault(&error))?.into_iter().map(values).collect())
    }

    /// LOAD DATA LOCAL: the server asks for a file, and gets the rows.
    pub async fn load(
        &mut self,
        table: &str,
        next: impl FnMut() -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<(), Fault> {
        let next = Mutex::new(next);
        self.connection.set_infile_handler(async move {
            let next = next.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(stream::iter(std::iter::from_fn(next).map(|rows| Ok(Bytes::from(rows)))).boxed())
        });
        let checks = "SET SESSION unique_checks = 0, foreign_key_checks = 0";
        self.connection.query_drop(checks).await.map_err(|error| fault(&error))?;
        // Every separator is named: a default may be another one.
        let load = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET latin1 \
             FIELDS TERMINATED BY '\\t' ENCLOSED BY '' ESCAPED BY '\\\\' LINES TERMINATED BY '\\n'"
        );
        self.connection.query_drop(load).await.map_err(|error| fault(&error))?;
        match self.connection.get_warnings() {
            0 => Ok(()),
            count => Err(self.warned(count).await),
        }
    }

    /// What the server warns of: it has loaded something else than it was given.
    async fn warned(&mut self, count: u16) -> Fault {
        let rows = self.query("SHOW WARNINGS LIMIT 1").await.unwrap_or_default();
        let words = rows.first().and_then(|row| row.get(2)).map_or_else(String::new, Value::words);
        Fault::new(FaultKind::Other, format!("{count} warnings, the first: {words}"))
    }
}

/// How the connection is encrypted.
fn encrypted(tls: &Tls) -> io::Result<Option<SslOpts>> {
    let options = SslOpts::default().with_disable_built_in_roots(true);
    Ok(match tls.mode {
        TlsMode::Disable => None,
        // The verifier is not made without an authority, though nobody asks it.
        TlsMode::Require => {
            let options = SslOpts::default();
            Some(options.with_danger_accept_invalid_certs(true).with_danger_skip_domain_validation(true))
        }
        TlsMode::VerifyCa | TlsMode::VerifyFull => {
            let roots = tls.authorities()?.into_iter().map(|root| root.to_vec().into()).collect();
            Some(options.with_root_certs(roots))
        }
    })
}

fn parameter(param: &Param<'_>) -> mysql_async::Value {
    match param {
        Param::Int(value) => mysql_async::Value::Int(*value),
        Param::Decimal(value) => mysql_async::Value::Bytes(decimal_text(*value).into_bytes()),
        Param::Text(text) => mysql_async::Value::Bytes(text.as_bytes().to_vec()),
    }
}

/// The text with a value in place of each `?`. No text of a statement has one elsewhere.
fn with_values(text: &str, params: &[Param<'_>]) -> String {
    let mut pieces = text.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    params.iter().zip(pieces).fold(first, |text, (param, piece)| {
        // Strings have escapes: the session says so.
        text + &parameter(param).as_sql(false) + piece
    })
}

fn values(row: mysql_async::Row) -> Row {
    let kinds: Vec<ColumnType> = row.columns_ref().iter().map(mysql_async::Column::column_type).collect();
    row.unwrap().into_iter().zip(kinds).map(|(value, kind)| converted(value, kind)).collect()
}

/// Statements that are not prepared are answered in texts, whatever the columns are.
fn converted(value: mysql_async::Value, kind: ColumnType) -> Value {
    let is_whole = matches!(
        kind,
        ColumnType::MYSQL_TYPE_TINY
            | ColumnType::MYSQL_TYPE_SHORT
            | ColumnType::MYSQL_TYPE_LONG
            | ColumnType::MYSQL_TYPE_INT24
            | ColumnType::MYSQL_TYPE_LONGLONG
    );
    match value {
        mysql_async::Value::NULL => Value::Null,
        mysql_async::Value::Int(value) => Value::Int(value),
        mysql_async::Value::UInt(value) => Value::Int(i64::try_from(value).unwrap_or(i64::MAX)),
        mysql_async::Value::Bytes(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            match kind {
                ColumnType::MYSQL_TYPE_NEWDECIMAL => decimal_of_text(&text)
                    .map_or_else(|| Value::Text(text.clone().into_owned()), Value::Decimal),
                _ if is_whole => {
                    text.parse().map_or_else(|_| Value::Text(text.clone().into_owned()), Value::Int)
                }
                _ => Value::Text(text.into_owned()),
            }
        }
        _ => Value::Int(0),
    }
}

fn fault(error: &Error) -> Fault {
    match error {
        Error::Server(said) => Fault::new(of_mariadb(said.code), said.message.clone()),
        // Of the handshake, or of the server's certificate.
        Error::Io(mysql_async::IoError::Tls(cause)) => Fault::new(FaultKind::Encryption, cause.to_string()),
        Error::Io(mysql_async::IoError::Io(cause))
            if cause.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) =>
        {
            Fault::new(FaultKind::Encryption, cause.to_string())
        }
        Error::Driver(mysql_async::DriverError::NoClientSslFlagFromServer) => {
            Fault::new(FaultKind::Encryption, "the server does not support TLS")
        }
        Error::Io(_) => Fault::new(FaultKind::Gone, error.to_string()),
        Error::Driver(mysql_async::DriverError::ConnectionClosed) => {
            Fault::new(FaultKind::Gone, "the server closed the connection")
        }
        _ => Fault::new(FaultKind::Other, error.to_string()),
    }
}
