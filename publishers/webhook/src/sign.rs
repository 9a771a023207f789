//! Signatures of Standard Webhooks.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use pillarbox_core::error::ConfigError;
use pillarbox_core::publisher::{FailureScope, PublishError, Secret};
use sha2::Sha256;

use crate::options::WebhookOptions;

/// Generators of secrets differ in whether they pad.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The secrets that sign, ready to use.
#[derive(Default)]
pub(crate) struct SigningKeys(Vec<Hmac<Sha256>>);

/// Shows the number of keys, and nothing of them.
impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKeys({})", self.0.len())
    }
}

impl SigningKeys {
    pub(crate) fn parse(secrets: &[Secret]) -> Result<Self, ConfigError> {
        secrets.iter().enumerate().map(|(index, secret)| key(index + 1, secret)).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of `webhook-signature`: a signature for each secret, in their order. `seconds` since 1970.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let signature = |key: &Hmac<Sha256>| {
            let mut mac = key.clone();
            mac.update(format!("{id}.{seconds}.").as_bytes());
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        self.0.iter().map(signature).collect::<Vec<_>>().join(" ")
    }
}

/// The secrets that sign a message: the same for all, or those of its tenant.
#[derive(Debug)]
pub(crate) enum Signing {
    All(SigningKeys),
    ByTenant(BTreeMap<String, SigningKeys>),
}

impl Signing {
    pub(crate) fn new(options: &WebhookOptions) -> Result<Self, ConfigError> {
        let Some(by_tenant) = &options.secrets_by_tenant else {
            return SigningKeys::parse(&options.secrets).map(Self::All);
        };
        let keys = by_tenant.iter().map(|(tenant, secrets)| {
            let keys = SigningKeys::parse(secrets).map_err(|error| {
                let problem = format!("of tenant `{}` {}", tenant.escape_debug(), error.problem());
                ConfigError::new("secrets_by_tenant", problem, error.remedy().to_owned())
            })?;
            Ok((tenant.clone(), keys))
        });
        keys.collect::<Result<_, _>>().map(Self::ByTenant)
    }

    /// False if nothing is signed.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self, Self::All(keys) if keys.is_empty())
    }

    /// The keys for the events of a tenant.
    ///
    /// # Errors
    /// Tenants have secrets of their own and this one has none: nothing is sent unsigned, or signed by another's.
    pub(crate) fn keys(&self, tenant: Option<&str>) -> Result<&SigningKeys, PublishError> {
        let refuse = |problem: String| PublishError::misconfigured(problem).limited_to(FailureScope::Message);
        match (self, tenant) {
            (Self::All(keys), _) => Ok(keys),
            (Self::ByTenant(keys), Some(tenant)) => keys.get(tenant).ok_or_else(|| {
                let tenant = tenant.escape_debug();
                refuse(format!("tenant `{tenant}` has no secret to sign with; add it to `secrets_by_tenant`"))
            }),
            (Self::ByTenant(_), None) => {
                let problem =
                    "the event has no tenant, and `secrets_by_tenant` asks for one; send it by another publisher";
                Err(refuse(problem.to_owned()))
            }
        }
    }
}

fn key(number: usize, secret: &Secret) -> Result<Hmac<Sha256>, ConfigError> {
    let remedy = "write `whsec_` followed by the Base64 of 24 to 64 random bytes, as by `openssl rand -base64 32`";
    let refuse =
        |problem: &str| ConfigError::new("secrets", format!("holds a secret, number {number}, that {problem}"), remedy);
    let text = secret.expose().strip_prefix("whsec_").ok_or_else(|| refuse("does not begin with `whsec_`"))?;
    let bytes = LENIENT.decode(text).map_err(|_| refuse("is not Base64"))?;
    if !(24..=64).contains(&bytes.len()) {
        return Err(refuse(&format!("has {} bytes", bytes.len())));
    }
    Hmac::new_from_slice(&bytes).map_err(|_| refuse("cannot be used"))
}

#[cfg(test)]
mod tests {
    use pillarbox_core::publisher::PublishErrorKind::Misconfigured;

    use super::*;

    /// The secret, the message and the signature that the specification's own libraries are tested with.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn it_is_the_signature_of_the_specification() {
        let body = br#"{"test": 2432232314}"#;
        let keys = SigningKeys::parse(&[SECRET.into()]).expect("a secret");
        assert_eq!(keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body), SIGNATURE);
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let both = SigningKeys::parse(&[other.into(), SECRET.into()]).expect("two secrets");
        let signatures = both.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(signatures.ends_with(&format!(" {SIGNATURE}")));
    }

    #[test]
    fn a_tenant_has_secrets_of_its_own_or_nothing_is_sent() {
        let options = |secrets: &[(&str, &[&str])]| {
            let secrets = secrets.iter().map(|(tenant, secrets)| {
                (tenant.to_string(), secrets.iter().map(|secret| Secret::from(*secret)).collect())
            });
            WebhookOptions { secrets_by_tenant: Some(secrets.collect()), ..WebhookOptions::default() }
        };
        let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
        let signing = Signing::new(&options(&[("acme", &[SECRET]), ("globex", &[other])])).expect("secrets");
        let sign = |tenant| {
            signing
                .keys(tenant)
                .map(|keys| keys.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#))
        };
        assert_eq!(sign(Some("acme")).as_deref(), Ok(SIGNATURE));
        assert!(sign(Some("globex")).is_ok_and(|signature| signature != SIGNATURE));
        for tenant in [None, Some(""), Some("ACME"), Some("../acme")] {
            let error = sign(tenant).expect_err("unsigned");
            assert_eq!((error.kind(), error.scope()), (Misconfigured, FailureScope::Message), "{error}");
            assert!(error.to_string().contains("`secrets_by_tenant`"), "{error}");
        }
        let error = Signing::new(&options(&[("acme", &["hunter2"])])).expect_err("refused").to_string();
        assert!(error.contains("`secrets_by_tenant` of tenant `acme`") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_named_by_its_place() {
        let error =
            |secret: &str| SigningKeys::parse(&[SECRET.into(), secret.into()]).expect_err("refused").to_string();
        for (secret, problem) in [
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "number 2, that does not begin with `whsec_`"),
            ("whsec_!!", "is not Base64"),
            ("whsec_aHVudGVyMg==", "has 7 bytes"),
        ] {
            assert!(error(secret).contains(problem) && !error(secret).contains(&secret[6..]), "{}", error(secret));
        }
        assert!(SigningKeys::parse(&["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into()]).is_ok());
    }
}
