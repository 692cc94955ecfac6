//! A connection to PostgreSQL. The user's task drives it itself: no second task is woken for each answer.

use std::error::Error as StdError;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::SinkExt;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, Connection, Error, Socket};

use crate::address::{Address, Connect, Endpoint, Manner, isolation_name};
use crate::error::{Fault, FaultKind, of_sqlstate};
use crate::schema::Schema;
use crate::statement::{
    Call, One, Param, Row, STATEMENTS, Statement, Value, decimal_of_binary, decimal_text, numbered,
};
use crate::tls::{Connector, Stream, TlsMode};

/// For connecting and logging in.
const CONNECT_SECONDS: u64 = 10;
/// How often the server looks whether its client is still there, in milliseconds.
const LOOK_MS: u32 = 2_000;

/// A connection with the statements that it has prepared.
pub struct PostgreSql {
    client: Client,
    connection: Pin<Box<Connection<Socket, Stream>>>,
    /// How a transaction begins.
    begin: String,
    /// Whether statements are prepared once; each is sent with its text otherwise.
    keeps: bool,
    prepared: Vec<Option<tokio_postgres::Statement>>,
}

impl PostgreSql {
    /// Connects and logs in.
    pub async fn open(connect: &Connect, manner: Manner) -> Result<Self, Fault> {
        let (client, connection) = dialled(connect).await?;
        let begin = format!("BEGIN ISOLATION LEVEL {}", isolation_name(manner.isolation));
        let prepared = vec![None; STATEMENTS];
        let keeps = manner.keeps;
        let mut session = Self { client, connection: Box::pin(connection), begin, keeps, prepared };
        if keeps {
            // Older servers do not know all of them. A user who thinks is not to be thrown out for that.
            for setting in [
                format!("client_connection_check_interval = {LOOK_MS}"),
                "idle_session_timeout = 0".to_owned(),
                "idle_in_transaction_session_timeout = 0".to_owned(),
            ] {
                let _ = session.query(&format!("SET {setting}")).await;
            }
        }
        Ok(session)
    }

    /// Sends all statements at once.
    pub async fn run(&mut self, calls: &[Call<'_>], schema: &Schema) -> Result<Vec<Vec<Row>>, Fault> {
        let Self { client, connection, begin, keeps, prepared } = self;
        for Call { statement, .. } in calls.iter().filter(|call| *keeps && !call.statement.is_bracket()) {
            let slot = &mut prepared[statement.number()];
            if slot.is_none() {
                *slot = Some(
                    driven(connection, client.prepare(&schema.qualified(&numbered(&statement.text()))))
                        .await?,
                );
            }
        }
        let answers = calls.iter().map(|Call { statement, params }| {
            let form = match (*statement, &prepared[statement.number()]) {
                (Statement::One(One::Begin), _) => Form::Bracket(begin.clone()),
                (statement, _) if statement.is_bracket() => Form::Bracket(statement.text()),
                (_, Some(prepared)) => Form::Prepared(prepared),
                (statement, None) => Form::Text(schema.qualified(&numbered(&statement.text()))),
            };
            Box::pin(answer(client, form, params))
        });
        let mut answers: Vec<_> = answers.collect();
        let mut done = Vec::with_capacity(answers.len());
        let all = poll_fn(|context| {
            // The first poll of each sends it: they are polled in order, however many have been answered.
            let answered = done.len();
            for (place, answer) in answers.iter_mut().enumerate().skip(answered) {
                match answer.as_mut().poll(context) {
                    Poll::Ready(Ok(rows)) if place == done.len() => done.push(rows),
                    Poll::Ready(Ok(_)) => unreachable!("answers come in the order of the questions"),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            if done.len() == calls.len() { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        driven(connection, all).await?;
        drop(answers);
        Ok(done)
    }

    /// Runs a statement that is not kept, in one exchange: behind a pooler the next one may go to another process.
    pub async fn query(&mut self, text: &str) -> Result<Vec<Row>, Fault> {
        let rows = driven(&mut self.connection, self.client.query_typed(text, &[])).await?;
        rows.iter().map(row).collect()
    }

    /// COPY.
    pub async fn load(
        &mut self,
        table: &str,
        mut next: impl FnMut() -> Option<Vec<u8>>,
    ) -> Result<(), Fault> {
        let statement = format!("COPY {table} FROM STDIN");
        let client = &self.client;
        let copied = async move {
            let mut sink = Box::pin(client.copy_in::<_, Bytes>(&statement).await?);
            while let Some(rows) = next() {
                sink.send(Bytes::from(rows)).await?;
            }
            sink.as_mut().finish().await
        };
        // The statement is prepared and executed in two exchanges, which a transaction keeps with one process of the server.
        driven(&mut self.connection, self.client.batch_execute("BEGIN")).await?;
        driven(&mut self.connection, copied).await?;
        driven(&mut self.connection, self.client.batch_execute("COMMIT")).await
    }
}

/// How a statement is sent.
enum Form<'a> {
    /// One that begins or ends a transaction.
    Bracket(String),
    /// One that the server knows.
    Prepared(&'a tokio_postgres::Statement),
    /// With its text, in one exchange.
    Text(String),
}

/// The rows of one statement.
async fn answer(client: &Client, form: Form<'_>, params: &[Param<'_>]) -> Result<Vec<Row>, Error> {
    let params = params.iter().map(|param| param as &(dyn ToSql + Sync));
    let rows = match form {
        Form::Bracket(text) => return client.batch_execute(&text).await.map(|()| Vec::new()),
        Form::Prepared(prepared) => client.query(prepared, &params.collect::<Vec<_>>()).await?,
        Form::Text(text) => {
            // The server finds out what they are.
            let params: Vec<_> = params.map(|param| (param, Type::UNKNOWN)).collect();
            client.query_typed(&text, &params).await?
        }
    };
    rows.iter().map(values).collect()
}

/// What comes of a future while the connection is moved on beside it.
async fn driven<T>(
    connection: &mut Pin<Box<Connection<Socket, Stream>>>,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, Fault> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            return Poll::Ready(done.map_err(|error| fault(&error)));
        }
        let ended = connection.as_mut().poll(context);
        // What the connection has brought.
        if let Poll::Ready(done) = future.as_mut().poll(context) {
            let gone = matches!(&ended, Poll::Ready(Err(error)) if error.as_db_error().is_some());
            return Poll::Ready(match (done, ended) {
                (Err(_), Poll::Ready(Err(error))) if gone => Err(fault(&error)),
                (done, _) => done.map_err(|error| fault(&error)),
            });
        }
        match ended {
            Poll::Ready(Ok(())) => {
                Poll::Ready(Err(Fault::new(FaultKind::Gone, "the server closed the connection")))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(fault(&error))),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Connects and logs in; the caller drives the connection.
pub async fn dialled(connect: &Connect) -> Result<(Client, Connection<Socket, Stream>), Fault> {
    let Connect { address, password } = connect;
    let mut config = Config::new();
    config.user(&address.user).dbname(&address.database).application_name("virtbench");
    config.connect_timeout(Duration::from_secs(CONNECT_SECONDS));
    password.iter().for_each(|password| {
        config.password(password);
    });
    match &address.endpoint {
        Endpoint::Tcp(host, port) => config.host(host).port(*port),
        Endpoint::Unix(path, port) => config.host_path(Address::socket_folder(path)).port(*port),
    };
    let is_encrypted = address.tls.mode != TlsMode::Disable;
    config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
    let tls =
        address.tls.configuration().map_err(|error| Fault::new(FaultKind::Encryption, error.to_string()))?;
    let limit = Duration::from_secs(CONNECT_SECONDS);
    let opened = tokio::time::timeout(limit, config.connect(Connector(tls))).await;
    opened.map_err(|_| Fault::new(FaultKind::Refused, "no answer"))?.map_err(|error| unreachable(&error))
}

fn row(row: &tokio_postgres::Row) -> Result<Row, Fault> {
    values(row).map_err(|error| fault(&error))
}

fn values(row: &tokio_postgres::Row) -> Result<Row, Error> {
    (0..row.len()).map(|column| row.try_get(column)).collect()
}

/// What is wrong, in the server's words if it said something.
fn fault(error: &Error) -> Fault {
    match error.as_db_error() {
        Some(said) => Fault::new(of_sqlstate(said.code().code()), said.message().to_owned()),
        None if error.is_closed() => Fault::new(FaultKind::Gone, "the connection is closed"),
        None => {
            let is_io = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
            Fault::new(if is_io { FaultKind::Gone } else { FaultKind::Other }, chain(error))
        }
    }
}

/// Whether TLS failed: the server has none, or is not believed.
fn is_about_encryption(error: &Error) -> bool {
    let mut cause: Option<&(dyn StdError + 'static)> = error.source();
    while let Some(error) = cause {
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if error.is::<rustls::Error>() || inner.is_some_and(|inner| inner.is::<rustls::Error>()) {
            return true;
        }
        cause = error.source();
    }
    error.as_db_error().is_none() && error.to_string().contains("TLS")
}

/// What is wrong when a connection does not come about.
fn unreachable(error: &Error) -> Fault {
    let fault = fault(error);
    match fault.kind {
        FaultKind::Other | FaultKind::Gone if is_about_encryption(error) => {
            Fault { kind: FaultKind::Encryption, ..fault }
        }
        FaultKind::Gone if error.as_db_error().is_none() => Fault { kind: FaultKind::Refused, ..fault },
        FaultKind::Other if fault.words.contains("password") => Fault { kind: FaultKind::Login, ..fault },
        FaultKind::Other if error.as_db_error().is_none() => Fault { kind: FaultKind::Refused, ..fault },
        _ => fault,
    }
}

fn chain(error: &dyn StdError) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

impl ToSql for Param<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match *self {
            Self::Int(value) if *kind == Type::INT8 => out.put_i64(value),
            Self::Int(value) if *kind == Type::INT4 => out.put_i32(i32::try_from(value)?),
            Self::Int(value) if *kind == Type::INT2 => out.put_i16(i16::try_from(value)?),
            Self::Int(value) => out.put_slice(value.to_string().as_bytes()),
            Self::Decimal(value) => out.put_slice(decimal_text(value).as_bytes()),
            Self::Text(text) => out.put_slice(text.as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, kind: &Type) -> Format {
        match self {
            Self::Int(_) if [Type::INT8, Type::INT4, Type::INT2].contains(kind) => Format::Binary,
            _ => Format::Text,
        }
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(match *kind {
            Type::INT2 => Self::Int(i16::from_be_bytes(raw.try_into()?).into()),
            Type::INT4 => Self::Int(i32::from_be_bytes(raw.try_into()?).into()),
            Type::INT8 | Type::TIMESTAMP => Self::Int(i64::from_be_bytes(raw.try_into()?)),
            Type::BOOL => Self::Int(raw.first().copied().unwrap_or(0).into()),
            Type::NUMERIC => Self::Decimal(decimal_of_binary(raw).ok_or("a number that is too large")?),
            _ => Self::Text(std::str::from_utf8(raw)?.to_owned()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}
