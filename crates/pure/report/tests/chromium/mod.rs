//! Chromium, told by the DevTools protocol what to open and asked what it shows. One browser serves a whole test: starting it
//! takes longer than all that is done in it.

#![allow(clippy::disallowed_methods, reason = "these tests write a file and run a browser")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long the browser may take for any answer.
const LIMIT: Duration = Duration::from_secs(120);

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub width: u32,
    pub is_dark: bool,
    /// `screen` or `print`.
    pub media: &'static str,
}

pub struct Browser {
    child: Child,
    requests: File,
    answers: Receiver<Value>,
    session: String,
    next: u64,
    folder: TempDir,
    /// What went wrong in the open page, and what it asked of the network.
    trouble: Vec<String>,
}

impl Browser {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [requests, answers] = ["requests", "answers"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").args([&requests, &answers]).status().unwrap();
        assert!(made.success(), "mkfifo: {made}");
        // The protocol goes through descriptors 3 and 4; messages end with a zero byte.
        let child = Command::new("sh")
            .args(["-c", "exec chromium \"$@\" 3<\"$0/requests\" 4>\"$0/answers\" 2>/dev/null"])
            .arg(folder.path())
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .spawn()
            .unwrap();
        let requests = OpenOptions::new().write(true).open(requests).unwrap();
        let mut read = BufReader::new(File::open(answers).unwrap());
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while read.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                let value = serde_json::from_slice(message.strip_suffix(&[0]).unwrap_or(&message));
                if value.map(|value: Value| sender.send(value)).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser =
            Self { child, requests, answers, session: String::new(), next: 0, folder, trouble: Vec::new() };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        attached["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a page; what was wrong with the one before is forgotten.
    pub fn open(&mut self, html: &str, with_scripts: bool) {
        let path = self.folder.path().join("page.html");
        fs::write(&path, html).unwrap();
        self.call("Emulation.setScriptExecutionDisabled", json!({ "value": !with_scripts }));
        self.trouble.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) }));
        while self.receive()["method"] != "Page.loadEventFired" {}
    }

    pub fn look_as(&mut self, view: View) {
        let size = json!({ "width": view.width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme =
            json!({ "name": "prefers-color-scheme", "value": if view.is_dark { "dark" } else { "light" } });
        self.call("Emulation.setEmulatedMedia", json!({ "media": view.media, "features": [scheme] }));
    }

    /// What an expression is in the page, which works without scripts of its own, too.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let found = self.call("Runtime.evaluate", asked);
        assert!(found["exceptionDetails"].is_null(), "{found:#}");
        found["result"]["value"].clone()
    }

    pub fn move_pointer(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// The number of sheets that printing the page takes.
    pub fn sheets(&mut self) -> usize {
        use base64::Engine;
        let printed =
            self.call("Page.printToPDF", json!({ "preferCSSPageSize": true, "printBackground": false }));
        let pdf =
            base64::engine::general_purpose::STANDARD.decode(printed["data"].as_str().unwrap()).unwrap();
        let is_page = |at: &usize| pdf[*at..].starts_with(b"/Type /Page") && pdf.get(at + 11) != Some(&b's');
        (0..pdf.len()).filter(is_page).count()
    }

    /// What went wrong since the page was opened.
    pub fn trouble(&self) -> &[String] {
        &self.trouble
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let sent = self.requests.write_all(format!("{message}\0").as_bytes());
        sent.unwrap_or_else(|error| panic!("chromium does not listen ({error}): apt-get install chromium"));
        loop {
            let answer = self.receive();
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let message = self.answers.recv_timeout(LIMIT).unwrap_or_else(|error| {
            panic!("chromium does not answer ({error}); install it with: apt-get install chromium")
        });
        let told = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                self.trouble.push(told.to_string());
            }
            "Network.requestWillBeSent" => {
                let url = told["request"]["url"].as_str().unwrap_or_default();
                if !url.starts_with("file:///") && !url.starts_with("data:") {
                    self.trouble.push(format!("asked for {url}"));
                }
            }
            _ => {}
        }
        message
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
