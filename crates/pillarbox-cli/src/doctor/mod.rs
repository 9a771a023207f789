//! Examines databases and brokers, once or again and again.

mod text;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use pillarbox::error::{ConfigError, StoreErrorKind};
use pillarbox_doctor::{Doctor, Report};
use pillarbox_program::failure::Failure as Common;
use pillarbox_program::report;
use pillarbox_program::signals::Signals;
use pillarbox_relay::{FileError, Relay, RelayError, RelayFile, doctor_of_unusable};
use tokio::time::sleep;

use crate::args::{DoctorArgs, Target, quoted};
use crate::failure::Failure;
use crate::store;

/// The options of which one says what to examine.
const PURPOSES: &str = "one of them: a database, as in `pillarbox doctor --store postgres://app@db/shop`, or the file of a relay, as in \
                        `pillarbox doctor --config relay.toml`";

/// Examines what the command line names. Exit code 1 if something was found.
pub(crate) async fn run(args: &DoctorArgs) -> Result<ExitCode, Failure> {
    let mut doctor = match &args.config {
        Some(file) => Box::pin(of_file(file, args)).await?,
        None if args.target.store.is_empty() => return Err(Failure::NoSource { purposes: PURPOSES }),
        None => Box::pin(of_store(args)).await?,
    };
    doctor = doctor.thresholds(args.limits.thresholds()).statement_limit(args.statement_timeout);
    for code in &args.ignore {
        doctor = doctor.ignore(code);
    }
    let examined = match args.watch {
        Some(interval) => watch(&doctor, args, interval).await,
        None => once(&doctor, args).await,
    };
    doctor.close().await;
    let healthy = examined?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn of_store(args: &DoctorArgs) -> Result<Doctor, Failure> {
    let name = format!("table {}", args.target.table);
    match store::at(&args.target).await {
        Ok(store) => Ok(Doctor::new().store(format!("{name} in {}", store.info().address), store)),
        Err(Failure::Common(Common::Store(error))) if error.kind() != StoreErrorKind::Config => {
            Ok(Doctor::new().unreachable(name, &error))
        }
        Err(failure) => Err(failure),
    }
}

async fn of_file(file: &Path, args: &DoctorArgs) -> Result<Doctor, Failure> {
    let store = &args.target.store;
    if !store.is_empty() && std::env::var("PILLARBOX_STORE").as_ref() != Ok(store) {
        let remedy = "leave it out; databases are named in the file";
        return Err(ConfigError::new("--store", "does not apply beside --config", remedy).into());
    }
    let made = match RelayFile::read(file) {
        Err(unreadable @ FileError::Unreadable { .. }) => return Err(RelayError::from(unreadable).into()),
        Ok(read) => Relay::new(read),
        Err(wrong) => Err(wrong.into()),
    };
    let problem = match made {
        Ok(relay) => match Box::pin(relay.doctor()).await {
            Ok(doctor) => return Ok(doctor),
            Err(problem) => problem,
        },
        Err(problem) => problem,
    };
    Ok(doctor_of_unusable(file, &problem.to_string()))
}

/// Examines once. Commands of remedies get the options of their outbox.
async fn examined(doctor: &Doctor, args: &DoctorArgs) -> Report {
    let mut found = doctor.run().await;
    for finding in &mut found.findings {
        let target = match &args.config {
            None => &args.target,
            Some(_) if finding.subject.starts_with("source ") => &of_source(&finding.subject),
            Some(_) => continue,
        };
        finding.remedy = target.in_commands(&finding.remedy).into();
        match &mut finding.command {
            Some(command) if !command.starts_with("pillarbox migrate") => {}
            Some(command) if args.config.is_none() => *command = target.command(&["migrate"]),
            // That of a file of SQLite names it, and each has its table.
            Some(command) if !command.contains(" --store ") => {
                command.push_str(&format!(" --store {}", quoted(&target.store)));
            }
            _ => {}
        }
    }
    found
}

/// The outbox of a source of a file. Its URL may hold a password, so words stand in its place, with which a command that is pasted ends at once:
/// without them it would work on the outbox that the environment names.
fn of_source(subject: &str) -> Target {
    Target { store: format!("URL of {subject}"), table: format!("TABLE of {subject}"), json: false }
}

async fn once(doctor: &Doctor, args: &DoctorArgs) -> Result<bool, Failure> {
    let found = examined(doctor, args).await;
    report::print_either(args.target.json, &found, || text::whole(&found, args.verbose))?;
    Ok(found.healthy)
}

/// Until it is interrupted. Says at the end whether the last examination found nothing.
async fn watch(doctor: &Doctor, args: &DoctorArgs, interval: Duration) -> Result<bool, Failure> {
    let mut signals = Signals::listen().map_err(Failure::of_system("listen for signals"))?;
    let (mut watched, mut last) = (text::Watched::default(), None::<Report>);
    loop {
        let found = tokio::select! {
            found = examined(doctor, args) => found,
            () = signals.next() => break,
        };
        if args.target.json {
            report::print_either(true, &found, String::new)?;
        } else {
            let changes = watched.changes(&found);
            match &last {
                None => report::print(&text::whole(&found, args.verbose))?,
                Some(_) => changes.iter().try_for_each(|change| report::print(change))?,
            }
        }
        last = Some(found);
        tokio::select! {
            () = sleep(interval) => {}
            () = signals.next() => break,
        }
    }
    Ok(last.is_none_or(|report| report.healthy))
}
