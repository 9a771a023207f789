//! The settings `codec` and `content_type`.

use pillarbox::Event;
use serde::Serialize;

#[derive(Serialize, Event)]
#[event(name = "a.b", codec = jsn)]
struct Misspelled;

#[derive(Serialize, Event)]
#[event(name = "a.b", codec = "json")]
struct Quoted;

#[derive(Serialize, Event)]
#[event(name = "a.b", codec)]
struct NoValue;

#[derive(Serialize, Event)]
#[event(name = "a.b", codec = json, codec = raw)]
struct Twice;

#[derive(Serialize, Event)]
#[event(name = "a.b", content_type = "")]
struct NoContentType;

#[derive(Serialize, Event)]
#[event(name = "a.b", content_type = json)]
struct ContentTypeWithoutQuotes;

fn main() {}
