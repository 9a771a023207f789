//! `pillarbox console`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Ended, pillarbox, run, send, sqlite};

/// The console's answers to this host.
fn ask(address: &str, path: &str, headers: &str) -> String {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(host).expect("connects");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").expect("asks");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("is answered");
    answer
}

/// Serves the console with these options while `test` asks it.
fn serve(options: &[&str], test: impl FnOnce(&str)) {
    let (_folder, file) = sqlite();
    let mut arguments = vec!["console", "--store", &file, "--listen", "127.0.0.1:0", "--json"];
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
