//! Pages of a web server, over HTTP/1.1 with connections that stay.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::header::{HOST, HeaderValue, SERVER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use virtbench_units::Random;

use crate::address::Address;
use crate::draws::{Stream, Weighted, stream};
use crate::service::{Fault, FaultKind, Service, ServiceUser, within};

/// Different pages at most: each has a histogram in each thread.
const MOST_PAGES: usize = 100;

/// A page with its weight among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Path and query, such as `/index.php?title=Main`.
    pub path: String,
    /// How often it is asked for, beside the others.
    pub weight: u32,
}

impl Page {
    /// Reads `PATH` or `PATH=WEIGHT`. What follows the last `=` is a weight if it is a number, unless that `=` gives a query's last
    /// key its value: `/item?id=42` is a page, and `/item?id=42=3` the same page with a weight.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let weighted = text.rsplit_once('=').and_then(|(path, weight)| Some((path, weight.parse().ok()?)));
        let weighted = weighted.filter(|(path, _)| {
            let last_pair = path.split_once('?').and_then(|(_, query)| query.rsplit('&').next());
            last_pair.is_none_or(|pair| pair.contains('='))
        });
        let (path, weight) = weighted.unwrap_or((text, 1));
        if !path.starts_with('/') || path.parse::<Uri>().is_err() {
            return Err(format!("{path:?} is no path: write for example /index.html or /index.html=3"));
        }
        if !(1..=1_000_000).contains(&weight) {
            return Err(format!("{text:?}: a weight lies between 1 and 1000000"));
        }
        Ok(Self { path: path.to_owned(), weight })
    }
}

/// Pages of a web server. Each kind of operation is a page: it is over when its last byte has come.
#[derive(Debug, Clone)]
pub struct Web {
    address: Address,
    host: HeaderValue,
    pages: Vec<(String, Uri)>,
    weights: Weighted,
}

impl Web {
    /// These pages of the server at `address`, whose name for the server is `host` where that is not the address.
    ///
    /// # Errors
    /// No pages, too many, or the same twice.
    pub fn new(address: Address, host: Option<&str>, pages: &[Page]) -> Result<Self, String> {
        if pages.is_empty() || pages.len() > MOST_PAGES {
            return Err(format!("name 1 to {MOST_PAGES} pages"));
        }
        let mut found: Vec<(String, Uri)> = Vec::new();
        for page in pages {
            let uri: Uri = page.path.parse().map_err(|error| format!("{}: {error}", page.path))?;
            if found.iter().any(|(path, _)| *path == page.path) {
                return Err(format!("{} is named twice: give it a weight", page.path));
            }
            found.push((page.path.clone(), uri));
        }
        let name = host.map_or_else(|| address.to_string(), ToOwned::to_owned);
        let host = HeaderValue::from_str(&name).map_err(|error| format!("{name:?}: {error}"))?;
        Ok(Self { address, host, pages: found, weights: Weighted::new(pages.iter().map(|page| page.weight)) })
    }
}

impl Service for Web {
    type User = WebUser;

    fn kinds(&self) -> Vec<String> {
        self.pages.iter().map(|(path, _)| path.clone()).collect()
    }

    async fn prepare(&self, limit: Duration) -> Result<Option<String>, Fault> {
        let mut user = self.user(0, 0);
        let answer = within(limit, user.ask(0)).await?;
        Ok(answer.headers().get(SERVER).and_then(|name| name.to_str().ok()).map(ToOwned::to_owned))
    }

    fn user(&self, number: u32, seed: u64) -> WebUser {
        WebUser { web: self.clone(), random: stream(seed, number, Stream::Choice), open: None }
    }
}

/// A connection: what asks, and what moves the bytes, which the asking task polls.
struct Open {
    asks: SendRequest<Empty<Bytes>>,
    moves: Pin<Box<Connection<TokioIo<TcpStream>, Empty<Bytes>>>>,
}

impl Open {
    /// Whether the server has not closed it meanwhile, as servers do when nothing is asked for a while.
    async fn is_usable(&mut self) -> bool {
        let has_ended = poll_fn(|context| Poll::Ready(self.moves.as_mut().poll(context).is_ready())).await;
        !has_ended && !self.asks.is_closed()
    }
}

/// A user of a web server.
pub struct WebUser {
    web: Web,
    random: Random,
    /// Nothing while an answer is awaited, so that a user who stops waiting has no connection.
    open: Option<Open>,
}

impl WebUser {
    async fn ask(&mut self, page: usize) -> Result<Response<()>, Fault> {
        let mut open = match self.open.take() {
            Some(mut open) => match open.is_usable().await {
                true => open,
                false => connect(&self.web.address).await?,
            },
            None => connect(&self.web.address).await?,
        };
        let uri = self.web.pages[page].1.clone();
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = uri;
        request.headers_mut().insert(HOST, self.web.host.clone());
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("virtbench"));
        let asks = &mut open.asks;
        let asked = async {
            asks.ready().await?;
            let (head, mut body) = asks.send_request(request).await?.into_parts();
            while let Some(frame) = body.frame().await {
                frame?;
            }
            Ok::<_, hyper::Error>(Response::from_parts(head, ()))
        };
        let (answer, stays) = match select(pin!(asked), &mut open.moves).await {
            Either::Left((answer, _)) => (answer, true),
            // The server has closed the connection; its answer may be there.
            Either::Right((_, asked)) => (asked.await, false),
        };
        if stays && answer.is_ok() {
            self.open = Some(open);
        }
        answer.map_err(|error| fault(&error))
    }
}

impl ServiceUser for WebUser {
    async fn connect(&mut self) -> Result<(), Fault> {
        self.open = Some(connect(&self.web.address).await?);
        Ok(())
    }

    fn choose(&mut self) -> usize {
        self.web.weights.choose(&mut self.random)
    }

    async fn perform(&mut self, kind: usize) -> Result<(), Fault> {
        let status = self.ask(kind).await?.status();
        if status.is_success() || status.is_redirection() { Ok(()) } else { Err(refused(status)) }
    }
}

/// Headers of an answer; what sends more is no web server.
const MOST_HEADERS: usize = 1000;

async fn connect(address: &Address) -> Result<Open, Fault> {
    let stream = address.connect().await?;
    let mut http = Builder::new();
    http.max_headers(MOST_HEADERS);
    let (asks, moves) = http.handshake(TokioIo::new(stream)).await.map_err(|error| fault(&error))?;
    Ok(Open { asks, moves: Box::pin(moves) })
}

fn refused(status: StatusCode) -> Fault {
    Fault::new(FaultKind::Refused, format!("HTTP {}", status.as_u16()))
}

fn fault(error: &hyper::Error) -> Fault {
    if error.is_parse() {
        Fault::new(FaultKind::Protocol, format!("the answer is no HTTP/1.1: {error}"))
    } else {
        Fault::gone(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_paths_and_weights() {
        let page = |path: &str, weight| Ok(Page { path: path.into(), weight });
        assert_eq!(Page::parse("/a"), page("/a", 1));
        assert_eq!(Page::parse("/a=3"), page("/a", 3));
        assert_eq!(Page::parse("/index.php?title=Main"), page("/index.php?title=Main", 1));
        assert_eq!(Page::parse("/index.php?title=Main=20"), page("/index.php?title=Main", 20));
        assert_eq!(Page::parse("/item?id=42"), page("/item?id=42", 1));
        assert_eq!(Page::parse("/item?a=1&id=42"), page("/item?a=1&id=42", 1));
        assert_eq!(Page::parse("/item?a=1&id=42=3"), page("/item?a=1&id=42", 3));
        assert_eq!(Page::parse("/search?q=a=b"), page("/search?q=a=b", 1));
        for text in ["", "a", "/a b", "/a=0", "http://host/a"] {
            assert!(Page::parse(text).is_err(), "{text}");
        }
        let address = Address::parse("127.0.0.1", 80).unwrap();
        let pages = ["/a", "/b=2"].map(|text| Page::parse(text).unwrap());
        assert_eq!(Web::new(address.clone(), None, &pages).unwrap().kinds(), ["/a", "/b"]);
        let twice = [pages[0].clone(), pages[0].clone()];
        assert!(Web::new(address.clone(), None, &twice).unwrap_err().contains("twice"));
        assert!(Web::new(address, None, &[]).is_err());
    }
}
