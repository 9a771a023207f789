use pillarbox_core::ownership::NodeId;

use super::members::is_of;
use super::{Checker, Violation, event_number};
use crate::plan::Routing;

/// A call of a publisher.
#[derive(Debug, Clone)]
pub struct Sent {
    number: u64,
    /// The node that called.
    pub(super) node: NodeId,
    /// The events of its messages.
    pub(super) events: Vec<u32>,
}

impl Checker {
    /// A process asks the publisher of this broker to send messages: their ids and bodies. Returns the number of the call.
    pub fn sending<'a>(&mut self, name: &str, broker: u8, messages: impl Iterator<Item = (&'a str, &'a [u8])>) -> u64 {
        self.call_number += 1;
        let number = self.call_number;
        let mut events = Vec::new();
        let mut sender = None;
        for (id, body) in messages {
            let event = event_number(id);
            let said = |what: &str| format!("{name} sends e{event} to the broker {broker}: {what}");
            let checked = match self.events.get(event as usize) {
                Some(written) if written.payload.as_bytes() != body => Err("its body is not what was written"),
                Some(written) if Routing::broker(written.place) != broker => Err("it belongs to another broker"),
                Some(_) => Ok(()),
                None => Err("no such event was written"),
            };
            self.note(checked.map_err(|what| Violation::new("I8", said(what))));
            let call = self.calls.running().iter().find(|call| call.event == event && is_of(&call.node, name));
            let Some(node) = call.map(|call| call.node.clone()) else {
                let what = said("no call of its handler runs");
                self.note(Err(Violation::new("I2", what)));
                continue;
            };
            let line = self.ledger.lines().iter().find(|line| line.event == event).copied();
            if let Some(line) = line.filter(|_| !self.members.is_excused(&node)) {
                let checked = self.check_order(&node, &line, &events);
                self.note(checked.map_err(|what| Violation::new("I3", said(&what))));
            }
            events.push(event);
            sender = Some(node);
        }
        if let Some(node) = sender {
            self.sent.push(Sent { number, node, events });
        }
        number
    }

    /// A call of a publisher has ended, or was dropped.
    pub fn sent(&mut self, number: u64) {
        self.sent.retain(|sent| sent.number != number);
    }

    /// A broker has confirmed an event.
    pub fn confirmed(&mut self, event: u32) {
        self.confirmed.insert(event);
    }

    /// The routes say that an event is done.
    pub fn check_confirmed(&mut self, event: u32) {
        if !self.confirmed.contains(&event) {
            let what = format!("e{event} is done, and no broker has confirmed it");
            self.note(Err(Violation::new("I9", what)));
        }
    }
}
