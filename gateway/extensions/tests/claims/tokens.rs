//! Tokens of clients: accepted and rejected tokens, and the use of their claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway_extensions::{
    CLIENT_NAME, CLIENT_VERSION, Exchange, ExtensionsWorker, JWT_CLAIMS, NoObserver, StageRequest,
    Step,
};
use gateway_upstream::{Client, ClientSettings};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use ring::{hmac, rand};
use serde_json::{Value, json};

use crate::stand::{exchange, extensions, fetch, json as answer, origin, run, serve, worker};

const SECRET: &[u8] = b"apollo";

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A token that is signed with HS256 and [`SECRET`], as in the seed data.
fn token(claims: &Value) -> String {
    token_as("HS256", hmac::HMAC_SHA256, claims)
}

fn token_as(name: &str, algorithm: hmac::Algorithm, claims: &Value) -> String {
    let signed = format!(
        "{}.{}",
        part(&json!({"alg": name, "typ": "JWT"})),
        part(claims)
    );
    let tag = hmac::sign(&hmac::Key::new(algorithm, SECRET), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

fn secret_set() -> String {
    json!({"keys": [{"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)}]}).to_string()
}

struct Guard {
    worker: ExtensionsWorker,
    _folder: tempfile::TempDir,
}

/// A worker with a router that verifies tokens in the header of the seed data.
fn guard(keys: &str, of_set: &str, more: &str) -> Guard {
    guard_of(keys, of_set, more, "http://localhost:1")
}

fn guard_of(keys: &str, of_set: &str, more: &str, subgraph: &str) -> Guard {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, keys).unwrap();
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"header_name": "authentication",
            "jwks": [{{"url": "file://{}"{of_set}}}], "allow_tokens_without_expiry": true{more}}}}}}},
            "telemetry": {{"apollo": {{"client_name_claim": "client_name", "client_version_claim": "client_version"}}}},
            "headers": {{"all": {{"request": [
                {{"insert": {{"name": "apollographql-client-name", "from_context": "{JWT_CLAIMS}#/client_name"}}}}]}}}}}}"#,
        file.display()
    );
    Guard {
        worker: worker(&yaml, subgraph),
        _folder: folder,
    }
}

/// The status of the rejection, or `None`.
async fn refused(worker: &ExtensionsWorker, header: Option<&str>) -> (Option<u16>, Exchange) {
    let exchange = exchange(&[]);
    let mut request = StageRequest::default();
    if let Some(header) = header {
        request
            .headers
            .insert("authentication", header.parse().unwrap());
    }
    let step = worker
        .router
        .as_ref()
        .unwrap()
        .request(&exchange, &mut request)
        .await;
    match step {
        Step::Continue => (None, exchange),
        Step::Break(response) => (Some(response.status.as_u16()), exchange),
    }
}

#[track_caller]
fn accepts(guard: &Guard, token: &str, is_accepted: bool) {
    let (status, exchange) = run(refused(&guard.worker, Some(&format!("Bearer {token}"))));
    assert_eq!(status, (!is_accepted).then_some(401), "{token}");
    assert_eq!(exchange.context.contains(JWT_CLAIMS), is_accepted);
}

#[test]
fn client_awareness_works_by_configuration_alone() {
    run(async {
        let origin = origin().await;
        let guard = guard_of(&secret_set(), "", "", &origin.url);
        let claims = json!({"client_name": "coprocessor", "client_version": 1.5});
        let header = format!("Bearer {}", token(&claims));
        let (status, exchange) = refused(&guard.worker, Some(&header)).await;
        assert_eq!(status, None);
        assert_eq!(exchange.context.get(JWT_CLAIMS), Some(claims));
        assert_eq!(
            exchange.context.text(CLIENT_NAME).as_deref(),
            Some("coprocessor")
        );
        assert_eq!(
            exchange.context.text(CLIENT_VERSION).as_deref(),
            Some("1.5")
        );
        fetch(&guard.worker, &exchange).await;
        assert_eq!(
            origin.last().all("apollographql-client-name"),
            ["coprocessor"]
        );
    });
}

#[test]
fn a_script_reads_the_claims() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("keys.json"), secret_set()).unwrap();
    let script = r#"fn router_service(service) { service.map_request(|request| {
        let claims = request.context[Router.APOLLO_AUTHENTICATION_JWT_CLAIMS];
        request.headers["apollographql-client-name"] = claims.client_name;
        request.context["apollo::telemetry::client_name"] = claims.client_name;
    }); }"#;
    std::fs::write(folder.path().join("main.rhai"), script).unwrap();
    let path = folder.path().display();
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"jwks": [{{"url": "file://{path}/keys.json"}}], "allow_tokens_without_expiry": true}}}}}},
            "rhai": {{"scripts": "{path}"}}}}"#
    );
    let worker = worker(&yaml, "http://localhost:1");
    let exchange = exchange(&[]);
    let mut request = StageRequest::default();
    let header = format!("Bearer {}", token(&json!({"client_name": "web"})));
    request
        .headers
        .insert("authorization", header.parse().unwrap());
    let step = run(worker.router.unwrap().request(&exchange, &mut request));
    assert!(matches!(step, Step::Continue), "{step:?}");
    assert_eq!(request.headers["apollographql-client-name"], "web");
    assert_eq!(exchange.context.text(CLIENT_NAME).as_deref(), Some("web"));
}

#[test]
fn the_signature_decides() {
    let guard = guard(&secret_set(), "", "");
    let good = token(&json!({"sub": "me"}));
    accepts(&guard, &good, true);
    for (name, algorithm) in [("HS384", hmac::HMAC_SHA384), ("HS512", hmac::HMAC_SHA512)] {
        accepts(&guard, &token_as(name, algorithm, &json!({})), true);
    }
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (head, _) = signed.split_once('.').unwrap();
    let none = part(&json!({"alg": "none"}));
    for bad in [
        format!("{head}.{}.{signature}", part(&json!({"sub": "you"}))),
        format!("{signed}."),
        format!("{signed}.AAAA"),
        format!("{none}.{}.", part(&json!({"sub": "me"}))),
        token_as("RS256", hmac::HMAC_SHA256, &json!({})),
        token_as("HS384", hmac::HMAC_SHA256, &json!({})),
        signed.to_owned(),
        "x".to_owned(),
        String::new(),
    ] {
        accepts(&guard, &bad, false);
    }
}

#[test]
fn times_issuers_audiences_and_algorithms_are_checked() {
    for (of_set, claims, is_accepted) in [
        ("", json!({"exp": 4_102_444_800_u64, "nbf": 0}), true),
        ("", json!({"exp": 1}), false),
        ("", json!({"nbf": 4_102_444_800_u64}), false),
        // A time of the wrong type does not count as absent.
        ("", json!({"exp": "never"}), false),
        ("", json!({"nbf": null}), false),
        (r#", "issuers": ["a", "b"]"#, json!({"iss": "b"}), true),
        (r#", "issuers": ["a", "b"]"#, json!({"iss": "c"}), false),
        (r#", "issuers": ["a"]"#, json!({}), false),
        (r#", "issuer": "a""#, json!({"iss": "a"}), true),
        (r#", "audiences": ["a"]"#, json!({"aud": ["b", "a"]}), true),
        (r#", "audiences": ["a"]"#, json!({"aud": "a"}), true),
        (r#", "audiences": ["a"]"#, json!({"aud": "b"}), false),
        (r#", "audiences": ["a"]"#, json!({}), false),
        // An empty list allows every issuer and every audience, but no algorithm.
        (r#", "issuers": []"#, json!({"iss": "c"}), true),
        (r#", "issuers": []"#, json!({}), true),
        (
            r#", "issuers": [], "issuer": "a""#,
            json!({"iss": "c"}),
            false,
        ),
        (r#", "audiences": []"#, json!({"aud": "b"}), true),
        (r#", "audiences": []"#, json!({}), true),
        (r#", "algorithms": []"#, json!({}), false),
        (r#", "algorithms": ["HS256"]"#, json!({}), true),
        (r#", "algorithms": ["HS512"]"#, json!({}), false),
    ] {
        accepts(
            &guard(&secret_set(), of_set, ""),
            &token(&claims),
            is_accepted,
        );
    }
}

/// A provider may sign the tokens of several policies with one key. Each policy has a set of its own.
#[test]
fn a_key_in_several_sets_vouches_for_the_issuers_of_each() {
    let one = guard(&secret_set(), "", "");
    let path = one._folder.path().join("keys.json");
    let url = format!("\"url\": \"file://{}\"", path.display());
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"header_name": "authentication", "allow_tokens_without_expiry": true, "jwks": [
            {{{url}, "issuers": ["one"], "audiences": ["a"]}}, {{{url}, "issuers": ["two"], "audiences": ["b"]}}, {{{url}, "algorithms": ["HS512"]}}]}}}}}}}}"#
    );
    let worker = worker(&yaml, "http://localhost:1");
    for (issuer, audience, expected) in [
        ("one", "a", None),
        ("two", "b", None),
        ("one", "b", Some(401)),
        ("two", "a", Some(401)),
        ("three", "a", Some(401)),
    ] {
        let token = token(&json!({"iss": issuer, "aud": audience}));
        let (status, _) = run(refused(&worker, Some(&format!("Bearer {token}"))));
        assert_eq!(status, expected, "{issuer} {audience}");
    }
}

#[test]
fn a_token_without_an_end_is_refused_unless_told_otherwise() {
    let eternal = token(&json!({"sub": "me"}));
    let bounded = token(&json!({"sub": "me", "exp": 4_102_444_800_u64}));
    accepts(&guard(&secret_set(), "", ""), &eternal, true);
    let strict = guard(&secret_set(), "", r#", "require_token": true"#);
    accepts(&strict, &bounded, true);
    let path = strict._folder.path().join("keys.json");
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"header_name": "authentication", "jwks": [{{"url": "file://{}"}}]}}}}}}}}"#,
        path.display()
    );
    let worker = worker(&yaml, "http://localhost:1");
    for (token, expected) in [(&eternal, Some(401)), (&bounded, None)] {
        let (status, _) = run(refused(&worker, Some(&format!("Bearer {token}"))));
        assert_eq!(status, expected);
    }
}

#[test]
fn an_extension_that_must_be_understood_is_refused() {
    let guard = guard(&secret_set(), "", "");
    for (crit, is_accepted) in [
        (json!({"alg": "HS256"}), true),
        (json!({"alg": "HS256", "x": 1}), true),
        (json!({"alg": "HS256", "crit": ["x"], "x": 1}), false),
        (json!({"alg": "HS256", "crit": []}), false),
        (json!({"alg": "HS256", "crit": null}), false),
    ] {
        let signed = format!("{}.{}", part(&crit), part(&json!({})));
        let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
        let tag = hmac::sign(&key, signed.as_bytes());
        let token = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag));
        accepts(&guard, &token, is_accepted);
    }
}

#[test]
fn two_headers_with_tokens_are_refused() {
    let token = format!("Bearer {}", token(&json!({})));
    for more in ["", r#", "on_error": "Continue""#] {
        let guard = guard(&secret_set(), "", more);
        let mut request = StageRequest::default();
        for _ in 0..2 {
            let value = token.parse().unwrap();
            request.headers.append("authentication", value);
        }
        let router = guard.worker.router.as_ref().unwrap();
        let step = run(router.request(&exchange(&[]), &mut request));
        let Step::Break(response) = step else {
            panic!("two headers were accepted")
        };
        assert_eq!(response.status, 401);
    }
}

#[test]
fn what_happens_without_a_token_is_configured() {
    let good = format!("Bearer {}", token(&json!({})));
    for (more, header, status) in [
        ("", None, None),
        (r#", "require_token": true"#, None, Some(401)),
        ("", Some("Basic abc"), Some(401)),
        (
            r#", "ignore_other_prefixes": true"#,
            Some("Basic abc"),
            None,
        ),
        (
            r#", "ignore_other_prefixes": true, "require_token": true"#,
            Some("Basic abc"),
            Some(401),
        ),
        ("", Some("Bearer abc"), Some(401)),
        (r#", "on_error": "Continue""#, Some("Bearer abc"), None),
        (
            r#", "on_error": "RedactedError""#,
            Some("Bearer abc"),
            Some(401),
        ),
        ("", Some(good.as_str()), None),
        (
            r#", "header_value_prefix": """#,
            Some(&good["Bearer ".len()..]),
            None,
        ),
    ] {
        let guard = guard(&secret_set(), "", more);
        let (found, _) = run(refused(&guard.worker, header));
        assert_eq!(found, status, "{more} {header:?}");
    }
}

/// A key file may be replaced at any moment, even while the workers are created.
#[test]
fn workers_have_the_keys_that_were_read_when_the_extensions_were_built() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    std::fs::write(&file, secret_set()).unwrap();
    let yaml = format!(
        r#"{{"authentication": {{"router": {{"jwt": {{"header_name": "authentication",
            "jwks": [{{"url": "file://{}"}}], "allow_tokens_without_expiry": true}}}}}}}}"#,
        file.display()
    );
    let extensions = extensions(&yaml, "http://localhost:1").unwrap();
    std::fs::remove_file(&file).unwrap();
    let client = Client::new(ClientSettings::default());
    let worker = extensions.worker(client, std::rc::Rc::new(NoObserver));
    let good = format!("Bearer {}", token(&json!({})));
    let (found, _) = run(refused(&worker, Some(&good)));
    assert_eq!(found, None);
}

#[test]
fn why_a_token_is_refused_may_be_kept_from_the_client() {
    for (more, is_said) in [("", true), (r#", "on_error": "RedactedError""#, false)] {
        let guard = guard(&secret_set(), "", more);
        let mut request = StageRequest::default();
        let value = "Bearer abc".parse().unwrap();
        request.headers.append("authentication", value);
        let router = guard.worker.router.as_ref().unwrap();
        let Step::Break(response) = run(router.request(&exchange(&[]), &mut request)) else {
            panic!("a text that is no token was accepted")
        };
        let body = String::from_utf8(response.body.to_vec()).unwrap();
        assert!(body.contains("AUTH_ERROR"), "{body}");
        assert_eq!(body.contains("not a JSON Web Token"), is_said, "{body}");
    }
}

#[test]
fn elliptic_curves_sign_as_well() {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
    let point = pair.public_key().as_ref();
    let x = URL_SAFE_NO_PAD.encode(&point[1..33]);
    let y = URL_SAFE_NO_PAD.encode(&point[33..]);
    let seed: [u8; 32] = rand::generate(&random).unwrap().expose();
    let edwards = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    let set = json!({"keys": [
        {"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": "ec", "use": "sig", "alg": "ES256"},
        {"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(edwards.public_key().as_ref())},
        {"kty": "EC", "crv": "unknown"},
    ]});
    let guard = guard(&set.to_string(), "", "");
    let signed = |alg: &str, kid: &str| {
        format!(
            "{}.{}",
            part(&json!({"alg": alg, "kid": kid})),
            part(&json!({}))
        )
    };
    for (kid, is_accepted) in [("ec", true), ("other", false)] {
        let text = signed("ES256", kid);
        let signature = pair.sign(&random, text.as_bytes()).unwrap();
        let token = format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature));
        accepts(&guard, &token, is_accepted);
    }
    let text = signed("EdDSA", "any");
    let signature = edwards.sign(text.as_bytes());
    accepts(
        &guard,
        &format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)),
        true,
    );
    accepts(&guard, &token(&json!({})), false);
}

/// RFC 7515, A.2: a token signed with RS256 and the key from that section.
#[test]
fn the_example_of_the_specification_for_rsa_verifies() {
    let modulus = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let set = json!({"keys": [{"kty": "RSA", "n": modulus, "e": "AQAB"}]}).to_string();
    let (status, exchange) = run(refused(
        &guard(&set, "", "").worker,
        Some(&format!("Bearer {token}")),
    ));
    // It expired in 2011. This is its only defect.
    assert_eq!(status, Some(401));
    assert!(!exchange.context.contains(JWT_CLAIMS));
    let folder = guard(&set, "", "");
    let response = run(async {
        let mut request = StageRequest::default();
        let header = format!("Bearer {token}");
        request
            .headers
            .insert("authentication", header.parse().unwrap());
        folder
            .worker
            .router
            .as_ref()
            .unwrap()
            .request(&exchange, &mut request)
            .await
    });
    let Step::Break(response) = response else {
        panic!("an old token was accepted")
    };
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(
        body["errors"][0]["message"],
        "the token is not valid at this time"
    );
}

#[test]
fn keys_at_a_url_are_asked_for_once_in_a_while() {
    run(async {
        let keys = serve(|_| Some(answer(secret_set()))).await;
        let yaml = format!(
            r#"{{"authentication": {{"router": {{"jwt": {{"header_name": "authentication", "jwks": [{{"url": "{}/jwks",
                "headers": [{{"name": "x-key", "value": "k"}}]}}]}}}}}}}}"#,
            keys.url
        );
        let worker = worker(&yaml, "http://localhost:1");
        let header = format!("Bearer {}", token(&json!({"exp": 4_102_444_800_u64})));
        for _ in 0..3 {
            assert_eq!(refused(&worker, Some(&header)).await.0, None);
        }
        let seen = keys.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (seen[0].method.as_str(), seen[0].path.as_str()),
            ("GET", "/jwks")
        );
        assert_eq!(seen[0].all("x-key"), ["k"]);
    });
}

#[test]
fn key_sets_that_cannot_be_used_stop_the_start() {
    for (keys, words) in [
        (Some("{}"), "missing field `keys`"),
        (Some(r#"{"keys":[]}"#), "no key for signatures"),
        (
            Some(r#"{"keys":[{"kty":"oct","k":"YQ","use":"enc"}]}"#),
            "no key for signatures",
        ),
        (
            Some(r#"{"keys":[{"kty":"oct","k":"YQ","alg":"XX1"}]}"#),
            "no key for signatures",
        ),
        (None, "cannot read"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("k");
        if let Some(keys) = keys {
            std::fs::write(&file, keys).unwrap();
        }
        let yaml = format!(
            r#"{{"authentication": {{"router": {{"jwt": {{"jwks": [{{"url": "file://{}"}}]}}}}}}}}"#,
            file.display()
        );
        let error = extensions(&yaml, "http://localhost:1").err().unwrap();
        assert!(error.contains(words), "{error}");
    }
}
