use clap::{Args, ValueEnum};

use super::MOST_EVENTS;
use super::beside::{Pace, WritersArg};
use pillarbox_program::arguments::ModeArg;

#[derive(Debug, Args)]
pub(crate) struct RelayBenchArgs {
    /// The kind of broker.
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) to: Broker,
    /// The broker's URL. [default: a broker on this host]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The target of the events: a subject, a stream, a topic; it has to exist. [default: pillarbox-bench]
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Events of the backlog.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=MOST_EVENTS))]
    pub(crate) events: u32,
    /// The delivery mode.
    #[arg(long, value_enum, value_name = "MODE", default_value = "partitioned")]
    pub(crate) mode: ModeArg,
    /// Concurrent calls of the publisher.
    #[arg(long, value_name = "N", default_value_t = 16)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) workers: u16,
    /// Maximum number of messages in a call.
    #[arg(long, value_name = "N", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub(crate) batch: u16,
    /// Delete the backlog's rows once their events are confirmed, instead of keeping them as DONE.
    #[arg(long)]
    pub(crate) delete_done: bool,
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) writers: WritersArg,
}

/// A kind of broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Broker {
    /// NATS JetStream.
    Nats,
    /// RabbitMQ.
    Rabbitmq,
    /// Kafka.
    Kafka,
    /// Redis Streams.
    Redis,
}

impl Broker {
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Nats => "nats",
            Self::Rabbitmq => "rabbitmq",
            Self::Kafka => "kafka",
            Self::Redis => "redis",
        }
    }
}

impl RelayBenchArgs {
    pub(crate) fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(match self.to {
            Broker::Nats => "nats://127.0.0.1:4222",
            Broker::Rabbitmq => "amqp://guest:guest@127.0.0.1:5672",
            Broker::Kafka => "kafka://127.0.0.1:9092",
            Broker::Redis => "redis://127.0.0.1:6379",
        })
    }

    pub(crate) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or(match self.to {
            // The default exchange leads to the queue of that name.
            Broker::Rabbitmq => "/pillarbox-bench",
            Broker::Nats | Broker::Kafka | Broker::Redis => "pillarbox-bench",
        })
    }
}
