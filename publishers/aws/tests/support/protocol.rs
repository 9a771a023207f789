use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::Received;

/// A request to either service.
pub(crate) struct Call {
    pub(crate) is_sqs: bool,
    target: String,
    /// What is to be published; `None` if something is asked only.
    pub(crate) messages: Option<Vec<Received>>,
}

pub(crate) fn read(target: &str, body: &[u8]) -> Call {
    match target.strip_prefix("AmazonSQS.") {
        Some(action) => of_json(action, &serde_json::from_slice(body).expect("JSON")),
        None => of_form(body),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn of_json(action: &str, body: &Value) -> Call {
    let target = text(&body["QueueUrl"]).or_else(|| text(&body["QueueName"])).unwrap_or_default();
    let entries = body["Entries"].as_array().cloned().unwrap_or_default();
    let messages = entries.iter().map(|entry| {
        let attributes = entry["MessageAttributes"].as_object().cloned().unwrap_or_default();
        Received {
            id: text(&entry["Id"]).unwrap_or_default(),
            body: text(&entry["MessageBody"]).unwrap_or_default(),
            attributes: attributes
                .iter()
                .map(|(name, value)| (name.clone(), text(&value["StringValue"]).unwrap_or_default()))
                .collect(),
            group: text(&entry["MessageGroupId"]),
            dedup: text(&entry["MessageDeduplicationId"]),
        }
    });
    let messages = messages.collect();
    Call { is_sqs: true, target, messages: (action == "SendMessageBatch").then_some(messages) }
}

fn of_form(body: &[u8]) -> Call {
    let form: BTreeMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
    let field = |name: &str| form.get(name).cloned();
    let mut messages = Vec::new();
    for number in 1.. {
        let entry = format!("PublishBatchRequestEntries.member.{number}.");
        let Some(id) = field(&format!("{entry}Id")) else { break };
        let mut message = Received { id, ..Received::default() };
        message.body = field(&format!("{entry}Message")).unwrap_or_default();
        message.group = field(&format!("{entry}MessageGroupId"));
        message.dedup = field(&format!("{entry}MessageDeduplicationId"));
        for place in 1.. {
            let attribute = format!("{entry}MessageAttributes.entry.{place}.");
            let Some(name) = field(&format!("{attribute}Name")) else { break };
            message.attributes.insert(name, field(&format!("{attribute}Value.StringValue")).unwrap_or_default());
        }
        messages.push(message);
    }
    let publishes = field("Action").is_some_and(|action| action == "PublishBatch");
    let target = field("TopicArn").unwrap_or_default();
    Call { is_sqs: false, target, messages: publishes.then_some(messages) }
}

/// An id of a message that no other has.
fn message_id() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    format!("message-{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Call {
    pub(crate) fn name(&self) -> String {
        self.target.rsplit(['/', ':']).next().unwrap_or_default().to_owned()
    }

    pub(crate) fn refuse(&self, status: u16, code: &str) -> (StatusCode, String) {
        let status = StatusCode::from_u16(status).expect("a status");
        if self.is_sqs {
            return (status, json!({"__type": format!("com.amazonaws.sqs#{code}"), "message": "no"}).to_string());
        }
        let error = format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>no</Message></Error>");
        (status, format!("<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"))
    }

    pub(crate) fn described(&self, name: &str) -> String {
        if self.is_sqs {
            let url = format!("https://sqs.eu-central-1.amazonaws.com/123456789012/{name}");
            return json!({"QueueUrl": url, "Attributes": {"QueueArn": name}}).to_string();
        }
        "<GetTopicAttributesResponse><GetTopicAttributesResult><Attributes/></GetTopicAttributesResult>\
         </GetTopicAttributesResponse>"
            .to_owned()
    }

    /// The answer to a batch: ids with the code of their refusal, where `!` at its end means the sender's fault.
    pub(crate) fn outcomes(&self, outcomes: &[(String, Option<String>)]) -> String {
        let split = |code: &str| (code.trim_end_matches('!').to_owned(), code.ends_with('!'));
        let (mut taken, mut refused) = (Vec::new(), Vec::new());
        for (id, code) in outcomes {
            match code.as_deref().map(split) {
                None if self.is_sqs => {
                    let message = message_id();
                    taken.push(json!({"Id": id, "MessageId": message, "MD5OfMessageBody": "x"}).to_string());
                }
                None => {
                    let message = message_id();
                    taken.push(format!("<member><Id>{id}</Id><MessageId>{message}</MessageId></member>"));
                }
                Some((code, fault)) if self.is_sqs => {
                    refused.push(json!({"Id": id, "Code": code, "SenderFault": fault, "Message": "no"}).to_string());
                }
                Some((code, fault)) => refused.push(format!(
                    "<member><Id>{id}</Id><Code>{code}</Code><SenderFault>{fault}</SenderFault></member>"
                )),
            }
        }
        if self.is_sqs {
            return format!("{{\"Successful\":[{}],\"Failed\":[{}]}}", taken.join(","), refused.join(","));
        }
        format!(
            "<PublishBatchResponse><PublishBatchResult><Successful>{}</Successful><Failed>{}</Failed>\
             </PublishBatchResult></PublishBatchResponse>",
            taken.concat(),
            refused.concat()
        )
    }
}
