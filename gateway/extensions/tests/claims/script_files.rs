//! Tests the files of scripts: imports, the start, and variables outside of functions.

use gateway_extensions::Step;
use serde_json::json;

use crate::scripts::{Scripts, request, routed, scripted};
use crate::stand::{exchange, extensions, run, worker};

#[test]
fn scripts_import_their_neighbours() {
    let scripts = Scripts::new(&[
        (
            "main.rhai",
            r#"
            import "guard" as guard;
            fn router_service(service) {
                service.map_request(|request| { request.context["closure"] = guard::word(); });
                service.map_request(Fn("named"));
                guard::register(service);
            }
            fn named(request) { request.context["named"] = guard::word(); }
        "#,
        ),
        (
            "guard.rhai",
            r#"
            fn word() { "w" }
            fn register(service) {
                service.map_request(|request| { request.context["inside"] = word(); });
            }
        "#,
        ),
    ]);
    let worker = worker(&scripts.yaml(), "http://localhost:1");
    let exchange = exchange(&[]);
    let step = run(worker.router.unwrap().request(&exchange, &mut request(&[])));
    assert!(matches!(step, Step::Continue), "{step:?}");
    for key in ["closure", "named", "inside"] {
        assert_eq!(exchange.context.text(key).as_deref(), Some("w"), "{key}");
    }
}

#[test]
fn scripts_that_cannot_be_used_stop_the_start_and_say_where() {
    for (files, words) in [
        (vec![], "cannot read"),
        (
            vec![("main.rhai", "fn router_service(service) {\n  let x = ;\n}")],
            "line 2",
        ),
    ] {
        let yaml = Scripts::new(&files);
        let error = extensions(&yaml.yaml(), "http://localhost:1")
            .err()
            .unwrap();
        assert!(error.contains(words), "{error}");
    }
}

/// Each of these scripts may decide who gets an answer, so no request may pass without it.
#[test]
fn scripts_that_fail_before_the_first_request_stop_the_start() {
    for (main, words) in [
        (
            "fn router_service(service) { throw 1; }",
            "`router_service` in",
        ),
        (
            "fn execution_service(service) { nowhere(); }",
            "Function not found: nowhere",
        ),
        (
            "fn subgraph_service(service, name) { if name == \"two\" { throw \"no two\"; } }",
            "no two",
        ),
        ("throw \"at the top\";", "the statements of"),
        (
            "let secret = env::get(\"ABSENT\");",
            "the environment has no `ABSENT`",
        ),
        (
            "import \"nope\" as nope;\nfn supergraph_service(service) {}",
            "nope",
        ),
        (
            "fn supergraph_service(service) { import \"nope\" as nope; }",
            "Module not found: nope",
        ),
        (
            "fn supergraph_service(service, name) {}",
            "`supergraph_service` in",
        ),
        ("fn subgraph_service(service) {}", "expected 2, found 1"),
        (
            "fn supergraph_service(service) { service.map_request(Fn(\"chek\")); }",
            "no script defines a function `chek` with one parameter",
        ),
        (
            "fn check(a, b) {} fn supergraph_service(service) { service.map_request(Fn(\"check\")); }",
            "no script defines a function `check` with one parameter",
        ),
        (
            "fn supergraph_service(service) { loop {} }",
            "`supergraph_service` in",
        ),
        ("while true {}", "the statements of"),
        (
            "fn supergraph_servce(service) { service.map_request(|r| { throw 1; }); }",
            "did you mean `supergraph_service`?",
        ),
        (
            "fn router_service(service) {} fn subgraph_servise(service, name) {}",
            "did you mean `subgraph_service`?",
        ),
    ] {
        let scripts = Scripts::new(&[("main.rhai", main)]);
        let error = extensions(&scripts.yaml(), "http://localhost:1").err();
        let error = error.unwrap_or_else(|| panic!("it starts: {main}"));
        assert!(error.contains(words), "{main}: {error}");
        assert!(error.contains("main.rhai"), "{main}: {error}");
    }
}

#[test]
fn a_helper_may_have_a_name_like_that_of_a_service_function() {
    let scripts = Scripts::new(&[(
        "main.rhai",
        "fn router_service(s) { s.map_request(|r| router_services(r)); } fn router_services(r) {}
         fn supergraph_service(s) {} fn supervise(r) {}",
    )]);
    let started = extensions(&scripts.yaml(), "http://localhost:1");
    assert_eq!(started.err(), None);
}

#[test]
fn a_problem_of_all_subgraphs_is_named_once() {
    let scripts = Scripts::new(&[(
        "main.rhai",
        "fn subgraph_service(service, name) { throw \"never\"; }",
    )]);
    let error = extensions(&scripts.yaml(), "http://localhost:1").err();
    assert_eq!(error.expect("it does not start").lines().count(), 1);
}

#[test]
fn scripts_see_the_constants_and_variables_outside_of_their_functions() {
    let top = "const KEY = \"x-key\"; let list = [1, 2]; const TABLE = #{ a: #{ b: 7 } };";
    for (how, rest) in [
        (
            "a closure",
            "fn router_service(s) { s.map_request(|r| { r.context[\"n\"] = `${KEY} ${list.len} ${TABLE.a.b}`; }); }",
        ),
        (
            "a named function",
            "fn router_service(s) { s.map_request(Fn(\"work\")); }
             fn work(r) { r.context[\"n\"] = `${KEY} ${list.len} ${TABLE.a.b}`; }",
        ),
        (
            "the registration",
            "fn router_service(s) { let n = `${KEY} ${list.len} ${TABLE.a.b}`; s.map_request(|r| { r.context[\"n\"] = n; }); }",
        ),
        (
            "the namespace in a closure",
            "fn router_service(s) { s.map_request(|r| { r.context[\"n\"] = `${global::KEY} 2 ${global::TABLE.a.b}`; }); }",
        ),
        (
            "the namespace in a function of a function",
            "fn router_service(s) { let two = 2; s.map_request(|r| { r.context[\"n\"] = text(two); }); }
             fn text(two) { `${global::KEY} ${two} ${global::TABLE.a.b}` }",
        ),
    ] {
        let worker = scripted(&format!("{top}\n{rest}"), "http://localhost:1");
        for _ in 0..2 {
            let (exchange, thrown) = routed(&worker);
            assert!(thrown.is_none(), "{how}: {thrown:?}");
            assert_eq!(exchange.context.get("n"), Some(json!("x-key 2 7")), "{how}");
        }
    }
}

#[test]
fn a_variable_outside_of_functions_keeps_its_value_between_requests() {
    for rest in [
        "fn router_service(s) { s.map_request(Fn(\"work\")); } fn work(r) { count += 1; r.context[\"n\"] = count; }",
        "fn router_service(s) { s.map_request(|r| { count += 1; r.context[\"n\"] = count; }); }",
    ] {
        let worker = scripted(&format!("let count = 0;\n{rest}"), "http://localhost:1");
        for wanted in 1..4 {
            let (exchange, thrown) = routed(&worker);
            assert!(thrown.is_none(), "{thrown:?}");
            assert_eq!(exchange.context.get("n"), Some(json!(wanted)), "{rest}");
        }
    }
}

/// The same script with and without the word `import`, which decides if statements run again.
#[test]
fn a_word_in_a_comment_changes_no_result() {
    let main = "const KEY = \"k\";
        fn router_service(s) { s.map_request(|r| { r.context[\"n\"] = KEY + helper(); }); }
        fn helper() { \"h\" }";
    for comment in ["", "// import\n", "// global\n"] {
        let worker = scripted(&format!("{comment}{main}"), "http://localhost:1");
        let (exchange, thrown) = routed(&worker);
        assert!(thrown.is_none(), "{comment}: {thrown:?}");
        assert_eq!(exchange.context.get("n"), Some(json!("kh")), "{comment}");
    }
}

#[test]
fn an_imported_script_sees_its_own_constants() {
    let scripts = Scripts::new(&[
        (
            "main.rhai",
            "import \"guard\" as guard; const KEY = \"of main\"; fn router_service(s) { guard::register(s); }",
        ),
        (
            "guard.rhai",
            "const KEY = \"of guard\"; fn register(s) { s.map_request(Fn(\"check\")); } fn check(r) { r.context[\"n\"] = KEY; }",
        ),
    ]);
    let (exchange, thrown) = routed(&worker(&scripts.yaml(), "http://localhost:1"));
    assert!(thrown.is_none(), "{thrown:?}");
    assert_eq!(exchange.context.get("n"), Some(json!("of guard")));
}

#[test]
fn each_call_has_a_scope_of_its_own() {
    let main = r#"
        fn router_service(service) {
            service.map_request(|request| { let n = 0; n += 1; request.context["n"] = n; });
        }
    "#;
    let worker = scripted(main, "http://localhost:1");
    let service = worker.router.unwrap();
    for _ in 0..2 {
        let exchange = exchange(&[]);
        let _step = run(service.request(&exchange, &mut request(&[])));
        assert_eq!(exchange.context.get("n"), Some(json!(1)));
    }
}
