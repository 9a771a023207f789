//! The page about the doctor has every check, with the words of the code.

use pillarbox_doctor::{BROKER_CHECKS, CONFIGURATION_CHECKS, Check, OUTBOX_CHECKS, RELAY_CHECKS};

const PAGE: &str = include_str!("../../../../docs/doctor.md");

const SECTIONS: [(&str, &[&Check]); 10] = [
    ("Every outbox", OUTBOX_CHECKS),
    ("PostgreSQL", pillarbox_postgres::examine::ALL),
    ("MySQL and MariaDB", pillarbox_mysql::examine::ALL),
    ("SQLite", pillarbox_sqlite::examine::ALL),
    ("Every broker", BROKER_CHECKS),
    ("NATS", pillarbox_nats::examine::ALL),
    ("RabbitMQ", pillarbox_rabbitmq::examine::ALL),
    ("Redis", pillarbox_redis::examine::ALL),
    ("The relay's file", CONFIGURATION_CHECKS),
    ("The relay itself", RELAY_CHECKS),
];

#[test]
fn the_page_explains_every_check_in_its_section_and_no_other() {
    for (title, checks) in SECTIONS {
        let (_, rest) = PAGE.split_once(&format!("\n## {title}\n")).unwrap_or_else(|| panic!("no section {title}"));
        let section = rest.split("\n## ").next().unwrap();
        let explained: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("### ")).collect();
        let codes: Vec<&str> = checks.iter().map(|check| check.code).collect();
        assert_eq!(explained, codes, "{title}");
        for Check { code, severity, cause, remedy, .. } in checks {
            let name = severity.name();
            let severity = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
            let text = format!("### {code}\n\n**{severity}.** {cause}\n\n**Remedy:** {remedy}\n");
            assert!(section.contains(&text), "docs/doctor.md lacks:\n{text}");
        }
    }
    // Its own tests see to the section of Kafka, whose client takes long to build.
    let (before, kafka) = PAGE.split_once("\n## Kafka\n").expect("a section");
    let after = kafka.split_once("\n## ").map_or("", |(_, after)| after);
    let explained = before.lines().chain(after.lines()).filter(|line| line.starts_with("### ")).count();
    assert_eq!(explained, SECTIONS.iter().map(|(_, checks)| checks.len()).sum::<usize>());
}

#[test]
fn no_two_checks_have_one_code() {
    let mut codes: Vec<&str> = SECTIONS.iter().flat_map(|(_, checks)| checks.iter().map(|check| check.code)).collect();
    codes.sort_unstable();
    let all = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), all);
}
