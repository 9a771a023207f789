use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// The accessibility checks.
const AXE: &str = include_str!("axe/axe-4.14.1.min.js");
/// The longest time for something to appear.
const PATIENCE: Duration = Duration::from_secs(40);

/// A Chromium without a window, and the driver that speaks for it.
pub(crate) struct Browser {
    pub(crate) client: Client,
    driver: Child,
}

/// A command of Chromium's own.
#[derive(Debug)]
struct Own(&'static str, Value);

impl WebDriverCompatibleCommand for Own {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.0))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.1.to_string()))
    }
}

impl Browser {
    pub(crate) async fn open() -> Self {
        const NEEDED: &str = "these tests need Chromium and its driver (`chromedriver`); run scripts/setup";
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect(NEEDED);
        let mut lines = BufReader::new(driver.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            line.strip_suffix('.')?.split_once("started successfully on port ").map(|(_, port)| port.to_owned())
        });
        let port = port.expect("the driver says its port");
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--hide-scrollbars",
            "--lang=en",
            "--window-size=1280,900",
        ];
        let options = json!({ "goog:chromeOptions": { "args": arguments }, "goog:loggingPrefs": { "browser": "ALL" } });
        let Value::Object(capabilities) = options else { panic!("it is an object") };
        let connected = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await;
        Self { client: connected.expect(NEEDED), driver }
    }

    pub(crate) async fn close(mut self) {
        self.client.clone().close().await.expect("the session ends");
        self.driver.kill().expect("the driver ends");
        self.driver.wait().expect("the driver has ended");
    }

    async fn own(&self, command: &'static str, body: Value) -> Value {
        self.client.issue_cmd(Own(command, body)).await.expect(command)
    }

    pub(crate) async fn goto(&self, address: &str) {
        self.client.goto(address).await.expect(address);
    }

    /// Presses what the selector finds first.
    pub(crate) async fn press(&self, selector: &str) {
        self.client.find(Locator::Css(selector)).await.expect(selector).click().await.expect(selector);
    }

    /// Fills in a field.
    pub(crate) async fn fill(&self, selector: &str, text: &str) {
        let field = self.client.find(Locator::Css(selector)).await.expect(selector);
        field.clear().await.expect(selector);
        field.send_keys(text).await.expect(selector);
    }

    /// All text of the page that can be seen.
    pub(crate) async fn text(&self) -> String {
        self.script("return document.body.innerText").await.as_str().unwrap_or_default().to_owned()
    }

    /// The number of elements that a selector finds.
    pub(crate) async fn count(&self, selector: &str) -> usize {
        self.client.find_all(Locator::Css(selector)).await.expect(selector).len()
    }

    pub(crate) async fn script(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until the page says so, without reloading it.
    pub(crate) async fn wait_for(&self, part: &str) {
        self.wait_until(&format!("return document.body.innerText.includes({})", json!(part))).await;
    }

    /// Waits until a script returns true.
    pub(crate) async fn wait_until(&self, script: &str) {
        let is_so = async {
            // While a page is being replaced there is nothing to ask.
            while self.client.execute(script, Vec::new()).await.ok() != Some(Value::Bool(true)) {
                sleep(Duration::from_millis(50)).await;
            }
        };
        if timeout(PATIENCE, is_so).await.is_err() {
            panic!("never true: {script}\n{}", self.text().await);
        }
    }

    /// Lets the browser prefer light or dark, on a screen of this size.
    pub(crate) async fn look(&self, scheme: &str, width: u32, height: u32) {
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.cdp("Emulation.setEmulatedMedia", &media).await;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.cdp("Emulation.setDeviceMetricsOverride", &size).await;
    }

    pub(crate) async fn cdp(&self, command: &str, parameters: &Value) -> Value {
        self.own("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await
    }

    /// Fails if axe-core finds something on the page that keeps people from using it.
    pub(crate) async fn assert_accessible(&self, page: &str) {
        self.script(AXE).await;
        let run = "const done = arguments[0]; axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })\
                   .then((found) => done(found.violations.map((wrong) => `${wrong.id}: ${wrong.nodes.map((node) => node.html + ' ' + node.failureSummary).join('; ')}`)))\
                   .catch((error) => done([String(error)]))";
        let wrong = self.client.execute_async(run, Vec::new()).await.expect("axe runs");
        assert_eq!(wrong, json!([]), "{page}");
    }

    /// Fails if the browser has complained: a script that failed, or something that the content policy keeps out.
    pub(crate) async fn assert_no_complaint(&self, page: &str) {
        let log = self.own("se/log", json!({ "type": "browser" })).await;
        let complaints: Vec<&Value> =
            log.as_array().expect("a list").iter().filter(|line| line["level"] == "SEVERE").collect();
        assert!(complaints.is_empty(), "{page}: {complaints:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A test that fails leaves no browser behind: the driver ends its own.
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
