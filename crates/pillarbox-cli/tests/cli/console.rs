//! `pillarbox console`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Ended, execute, pillarbox, run, send, sqlite};

/// The console's answers to this host.
fn ask(address: &str, path: &str, headers: &str) -> String {
    exchange(address, &format!("GET {path}"), headers, "")
}

fn exchange(address: &str, line: &str, headers: &str, body: &str) -> String {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).expect("connects");
    write!(stream, "{line} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}").expect("asks");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is answered");
    answer
}

/// Serves the console with these options while `test` asks it.
fn serve(options: &[&str], test: impl FnOnce(&str)) {
    let (_folder, file) = sqlite();
    serve_file(&file, options, test);
}

fn serve_file(file: &str, options: &[&str], test: impl FnOnce(&str)) {
    let mut arguments = vec!["console", "--store", file, "--listen", "127.0.0.1:0", "--json"];
    arguments.extend(options);
    let mut process = pillarbox(&arguments).spawn().expect("starts");
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let json: Value = serde_json::from_str(&line).expect("JSON");
    test(json["address"].as_str().expect("an address"));
    send("-TERM", &process);
    let ended = Ended::from(process.wait_with_output().expect("ends"));
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn it_serves_this_host_until_a_signal() {
    serve(&[], |address| {
        assert!(ask(address, "/", "").contains("location: s/shop.outbox_event/overview"));
        let page = ask(address, "/s/shop.outbox_event/overview", "");
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("local · operate"), "{page}");
    });
}

#[test]
fn it_asks_for_the_password_of_its_file() {
    let password = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(password.path(), "correct-horse-battery\n").expect("writes");
    let path = password.path().to_str().expect("text");
    serve(&["--token-file", path, "--read-only"], |address| {
        assert!(ask(address, "/s/shop.outbox_event/overview", "").contains("location: ../../login"));
        let bearer = "Authorization: Bearer correct-horse-battery\r\n";
        let page = ask(address, "/s/shop.outbox_event/overview", bearer);
        assert!(page.starts_with("HTTP/1.1 200") && page.contains("operate · read"), "{page}");
    });
}

#[test]
fn it_is_not_open_to_other_hosts_without_a_password() {
    let (_folder, file) = sqlite();
    let ended = run(&["console", "--store", &file, "--listen", "0.0.0.0:9465"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(
        ended.stderr.contains("open to other hosts at 0.0.0.0:9465") && ended.stderr.contains("password file"),
        "{ended:?}"
    );
}

/// The rows of the command line, and those of the console.
const ROWS: &str = "
    INSERT INTO outbox_event (seq, event_id, event_type, payload, status, attempts, available_at) VALUES
        (1, 'a', 't', '{}', 3, 1, NULL), (2, 'b', 't', '{}', 3, 1, NULL), (3, 'c', 't', '{}', 3, 1, NULL), (4, 'd', 't', '{}', 3, 1, NULL),
        (5, 'e', 't', '{}', 2, 1, 32503680000000000), (6, 'f', 't', '{}', 2, 1, 32503680000000000),
        (7, 'g', 't', '{}', 0, 0, NULL), (8, 'h', 't', '{}', 0, 0, NULL)";

#[tokio::test]
async fn the_audit_has_one_name_for_a_change_whoever_makes_it() {
    let (_folder, file) = sqlite();
    execute(&file, ROWS).await;
    let changes =
        [(["dead", "replay"], "replay"), (["dead", "discard"], "discard"), (["pending", "retry"], "retry-now")];
    let changes = changes.into_iter().chain([(["pending", "cancel"], "cancel")]);
    serve_file(&file, &[], |address| {
        for ((command, action), seq) in changes.zip((1..).step_by(2)) {
            let ended = run(&[command[0], command[1], "--seq", &seq.to_string(), "--store", &file]);
            assert_eq!(ended.code, Some(0), "{command:?}: {ended:?}");
            let form = format!("do={action}&seq={}", seq + 1);
            let page = ask(address, &format!("/s/shop.outbox_event/confirm?{form}"), "");
            let field = |name: &str| {
                let found =
                    page.split_once(&format!("name=\"{name}\" value=\"")).and_then(|(_, rest)| rest.split_once('"'));
                found.expect("a form").0
            };
            let body = format!("{form}&token={}&row_event={}", field("token"), field("row_event"));
            let headers = format!(
                "Sec-Fetch-Site: same-origin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
                body.len()
            );
            let answer = exchange(address, "POST /s/shop.outbox_event/act", &headers, &body);
            assert!(answer.starts_with("HTTP/1.1 303"), "{action}: {answer}");
        }
    });
    let audit = run(&["audit", "--store", &file, "--json"]).json();
    let entries: Vec<(&Value, &Value)> = audit["actions"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| (&entry["action"], &entry["changed"]))
        .collect();
    let one = &Value::from(1);
    let [replay, discard, retry, cancel] = ["replay", "discard", "retry-now", "cancel"].map(Value::from);
    let expected = [&cancel, &cancel, &retry, &retry, &discard, &discard, &replay, &replay].map(|name| (name, one));
    assert_eq!(entries, expected);
}
