//! The gateway neither requests nor returns unauthorized fields.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use gateway_federation::{
    AuthorizationOptions, Demand, Effort, ErrorPolicies, ErrorPolicy, Fetch, OperationOptions,
    OperationRequest, Operations, Overrides, ReportIn, Stop, SubgraphAnswer, SubgraphRequest,
    Supergraph,
};
use serde_json::{Value, json};

const SDL: &str = include_str!("authorization.graphql");

/// Returns all data for every request, even fields that the request does not select. A subgraph can do this,
/// too.
struct Everything {
    data: Value,
    asked: RefCell<Vec<String>>,
}

impl Fetch for Everything {
    async fn fetch(&self, request: SubgraphRequest<'_>) -> SubgraphAnswer {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON that this test wrote");
        let query = body["query"].as_str().expect("JSON that this test wrote");
        self.asked.borrow_mut().push(query.to_owned());
        SubgraphAnswer::from_body(json!({ "data": self.data }).to_string())
    }
}

fn data() -> Value {
    let user = json!({"id": "1", "name": "A", "email": "e", "card": "c", "secret": "s"});
    let post = |kind: &str| json!({"__typename": kind, "id": "1", "title": "T", "notes": "N"});
    let posts = json!([post("PublicBlog"), post("PrivateBlog")]);
    json!({
        "me": user, "users": [user], "open": user, "posts": posts, "found": posts,
        "product": {"__typename": "Product", "id": "9", "name": "P", "inStock": true},
        "_entities": [{"__typename": "Product", "inStock": true}],
        "level": "HIGH", "stamp": "S", "either": 1, "rename": user, "erase": 1,
    })
}

struct Gateway(Operations);

impl Gateway {
    fn new(authorization: AuthorizationOptions) -> Self {
        Self::of(SDL, authorization)
    }

    fn of(sdl: &str, authorization: AuthorizationOptions) -> Self {
        let options = OperationOptions {
            introspection: true,
            authorization,
            ..OperationOptions::default()
        };
        let supergraph = Supergraph::parse(sdl).expect("the supergraph of these tests");
        Self(Operations::new(Arc::new(supergraph), options))
    }

    /// Sends a query for a user with these grants. `user` stands for claims, scopes are plain, and policies
    /// start with `!`. Returns the response and the requests.
    fn ask(&self, query: &str, has: &[&str]) -> (Value, Vec<String>) {
        let overrides = Overrides::default();
        let mut requested = OperationRequest {
            query,
            operation_name: None,
            overrides: &overrides,
            grants: None,
        };
        let effort = || Effort::full(std::time::Duration::from_secs(5), Stop::default());
        let refused = |body: Vec<u8>| {
            (
                serde_json::from_slice(&body).expect("JSON that this test wrote"),
                Vec::new(),
            )
        };
        let mut prepared = match self.0.make(&requested, &effort()) {
            Ok(prepared) => prepared,
            Err(refusal) => return refused(refusal.body()),
        };
        let grants = prepared.grants(|demand| match demand {
            Demand::Authenticated => has.contains(&"user"),
            Demand::Scope(name) => has.contains(&name),
            Demand::Policy(name) => has.contains(&format!("!{name}").as_str()),
        });
        if let Some(grants) = &grants {
            requested.grants = Some(grants);
            prepared = match self.0.make(&requested, &effort()) {
                Ok(prepared) => prepared,
                Err(refusal) => return refused(refusal.body()),
            };
        }
        let variables = prepared.coerce(None).expect("JSON that this test wrote");
        let policies = ErrorPolicies::new(self.0.supergraph(), |_| ErrorPolicy::Include);
        let everything = Everything {
            data: data(),
            asked: RefCell::default(),
        };
        let body = {
            let mut future = Box::pin(prepared.execute(&variables, &everything, &policies));
            let mut context = Context::from_waker(Waker::noop());
            loop {
                if let Poll::Ready(executed) = future.as_mut().poll(&mut context) {
                    break executed.into_body();
                }
            }
        };
        (
            serde_json::from_slice(&body).expect("JSON that this test wrote"),
            everything.asked.into_inner(),
        )
    }
}

fn open() -> Gateway {
    Gateway::new(AuthorizationOptions::default())
}

/// The data, and the paths of the errors. All errors must be authorization errors.
fn outcome(answer: &Value) -> (Value, Vec<String>) {
    let errors = answer["errors"].as_array().cloned().unwrap_or_default();
    let paths = errors.iter().map(|error| {
        assert_eq!(error["message"], "Unauthorized field or type", "{answer}");
        assert_eq!(
            error["extensions"]["code"], "UNAUTHORIZED_FIELD_OR_TYPE",
            "{answer}"
        );
        let path = error["path"].as_array().expect("a path of texts").iter();
        path.map(|it| format!("/{}", it.as_str().expect("a path of texts")))
            .collect()
    });
    (answer["data"].clone(), paths.collect())
}

#[track_caller]
fn is(query: &str, has: &[&str], data: Value, paths: &[&str], asked: &[&str]) {
    let (answer, seen) = open().ask(query, has);
    let (found, errors) = outcome(&answer);
    assert_eq!(found, data, "{answer}");
    assert_eq!(errors, paths, "{answer}");
    assert_eq!(seen, asked);
}

#[test]
fn fields_are_null_and_nobody_is_asked_for_them() {
    let query = "{ me { name } open { name email } }";
    is(
        query,
        &[],
        json!({"me": null, "open": {"name": "A", "email": null}}),
        &["/me", "/open/email"],
        &["{open{name}}"],
    );
    is(
        query,
        &["user"],
        json!({"me": {"name": "A"}, "open": {"name": "A", "email": null}}),
        &["/open/email"],
        &["{me{...a}open{...a}}fragment a on User{name}"],
    );
    is(
        query,
        &["user", "read:email"],
        json!({"me": {"name": "A"}, "open": {"name": "A", "email": "e"}}),
        &[],
        &["{me{name}open{name email}}"],
    );
    // With aliases, in fragments, and twice.
    is(
        "{ open { b: email ...F ... { c: email } } } fragment F on User { d: email name }",
        &[],
        json!({"open": {"b": null, "d": null, "name": "A", "c": null}}),
        &["/open/b", "/open/d", "/open/c"],
        &["{open{name}}"],
    );
}

#[test]
fn nothing_left_is_no_request() {
    is("{ me { name } }", &[], json!({"me": null}), &["/me"], &[]);
    is(
        "{ open { email card } __typename }",
        &[],
        json!({"open": null, "__typename": "Query"}),
        &["/open/email", "/open/card"],
        &[],
    );
}

#[test]
fn a_null_that_is_not_allowed_takes_its_parent_along_without_another_error() {
    is(
        "{ open { name secret } posts { ... on PublicBlog { title } } }",
        &[],
        json!({"open": null, "posts": [{"title": "T"}, {}]}),
        &["/open/secret"],
        &["{open{name}posts{__typename ...on PublicBlog{title}}}"],
    );
    is("{ users { name } }", &[], Value::Null, &["/users"], &[]);
    is(
        "{ users { name email } }",
        &["read:others"],
        json!({"users": [{"name": "A", "email": null}]}),
        &["/users/@/email"],
        &["{users{name}}"],
    );
}

#[test]
fn lists_of_lists_are_alternatives_of_conjunctions() {
    for (has, may) in [
        (&["a"][..], false),
        (&["b"], false),
        (&["a", "b"], true),
        (&["c"], true),
        (&["!c"], false),
    ] {
        let (answer, _) = open().ask("{ either }", has);
        assert_eq!(answer["data"]["either"].is_null(), !may, "{has:?}");
    }
    for (has, may) in [
        (&["!read card"][..], false),
        (&["!read card", "!internal"], true),
        (&["!admin"], true),
        (&["admin"], false),
    ] {
        let (answer, _) = open().ask("{ open { id card } }", has);
        assert_eq!(answer["data"]["open"]["card"].is_null(), !may, "{has:?}");
    }
}

#[test]
fn enums_and_scalars_are_protected_wherever_they_are() {
    is(
        "{ level stamp open { id } }",
        &[],
        json!({"level": null, "stamp": null, "open": {"id": "1"}}),
        &["/level", "/stamp"],
        &["{open{id}}"],
    );
    is(
        "{ level stamp }",
        &["user", "!stamps"],
        json!({"level": "HIGH", "stamp": "S"}),
        &[],
        &["{level stamp}"],
    );
}

#[test]
fn mutations_that_are_not_allowed_are_not_carried_out() {
    is(
        "mutation { erase rename { id } }",
        &[],
        json!({"erase": null, "rename": {"id": "1"}}),
        &["/erase"],
        &["mutation{rename{id}}"],
    );
    is(
        "mutation { rename { email } }",
        &[],
        json!({"rename": null}),
        &["/rename/email"],
        &[],
    );
}

#[test]
fn fields_of_an_interface_are_those_of_all_its_objects() {
    is(
        "{ posts { id title } }",
        &[],
        json!({"posts": null}),
        &["/posts"],
        &[],
    );
    is(
        "{ posts { __typename } }",
        &[],
        json!({"posts": [{"__typename": "PublicBlog"}, {"__typename": "PrivateBlog"}]}),
        &[],
        &["{posts{__typename}}"],
    );
    is(
        "{ posts { ... on PublicBlog { id } ... on PrivateBlog { id } } }",
        &[],
        json!({"posts": [{"id": "1"}, {}]}),
        &["/posts/@/... on PrivateBlog"],
        &["{posts{__typename ...on PublicBlog{id}}}"],
    );
    // The gateway requests the object's type, to decide which object has the null.
    is(
        "{ posts { title ... on PrivateBlog { notes } } }",
        &["user"],
        json!({"posts": [{"title": "T"}, {"title": "T", "notes": null}]}),
        &["/posts/@/notes"],
        &["{posts{title __typename}}"],
    );
    // An unauthorized field of an authorized object.
    is(
        "{ posts { title notes } }",
        &["user"],
        json!({"posts": [{"title": "T", "notes": null}, {"title": "T", "notes": null}]}),
        &["/posts/@/notes"],
        &["{posts{title}}"],
    );
    is(
        "{ posts { ... on PublicBlog { notes } ... on PrivateBlog { notes } } }",
        &["user"],
        json!({"posts": [{"notes": "N"}, {"notes": null}]}),
        &["/posts/@/notes"],
        &["{posts{__typename ...on PublicBlog{notes}}}"],
    );
}

#[test]
fn no_way_around_leads_to_a_protected_object() {
    // Through the interface in a fragment, in a union, and with a named fragment.
    for query in [
        "{ posts { ... on Post { title } } }",
        "{ posts { ... { title } } }",
        "{ posts { ...F } } fragment F on Post { title }",
        "{ found { ... on Post { title } } }",
        "{ found { ...F } } fragment F on Post { ... on Post { title } }",
        "{ posts { ... on PublicBlog { id } ... on Post { title } } }",
        "{ found { ... on Post { ... on PrivateBlog { title } } } }",
        "query($no: Boolean = false) { posts { __typename ... on Post @skip(if: $no) { title } } }",
    ] {
        let (answer, asked) = open().ask(query, &[]);
        assert!(!answer.to_string().contains("\"T\""), "{query}: {answer}");
        assert!(!asked.concat().contains("title"), "{query}: {asked:?}");
        let (_, paths) = outcome(&answer);
        assert!(!paths.is_empty(), "{query}");
        let (answer, _) = open().ask(query, &["user"]);
        assert!(answer.to_string().contains("\"T\""), "{query}: {answer}");
    }
    // A selection that cannot meet the protected object is open.
    is(
        "{ found { ... on PublicBlog { ... on Post { title } } } }",
        &[],
        json!({"found": [{"title": "T"}, {}]}),
        &[],
        &["{found{__typename ...on PublicBlog{title}}}"],
    );
}

#[test]
fn keys_are_fetched_for_the_gateway_and_not_for_the_client() {
    let (answer, asked) = open().ask("{ product { name inStock } }", &[]);
    assert_eq!(
        answer,
        json!({"data": {"product": {"name": "P", "inStock": true}}})
    );
    assert_eq!(asked.len(), 2);
    // The merged data contains the key, and the client selects it. The response must not contain it.
    for query in [
        "{ product { id name inStock } }",
        "{ product { i: id inStock } }",
    ] {
        let (answer, _) = open().ask(query, &[]);
        assert!(!answer.to_string().contains("\"9\""), "{answer}");
        assert_eq!(answer["data"], json!({"product": null}));
    }
    let (answer, _) = open().ask("{ product { id inStock } }", &["user"]);
    assert_eq!(
        answer,
        json!({"data": {"product": {"id": "9", "inStock": true}}})
    );
}

#[test]
fn what_is_told_and_whether_it_is_refused_is_configured() {
    let options = AuthorizationOptions::default();
    let query = "{ me { name } open { name } }";
    let with = |options: AuthorizationOptions| Gateway::new(options).ask(query, &[]);
    let left = json!({"me": null, "open": {"name": "A"}});
    let (answer, _) = with(AuthorizationOptions {
        report_in: ReportIn::Nothing,
        ..options
    });
    assert_eq!(answer, json!({"data": left}));
    let (answer, _) = with(AuthorizationOptions {
        report_in: ReportIn::Extensions,
        ..options
    });
    let error = json!({
        "message": "Unauthorized field or type", "path": ["me"],
        "extensions": {"code": "UNAUTHORIZED_FIELD_OR_TYPE"},
    });
    let told = json!({"authorizationErrors": [error]});
    assert_eq!(answer, json!({"data": left, "extensions": told}));
    let (answer, asked) = with(AuthorizationOptions {
        reject: true,
        ..options
    });
    assert_eq!((answer, asked.len()), (json!({"errors": [error]}), 0));
    let (answer, asked) = with(AuthorizationOptions {
        dry_run: true,
        reject: true,
        ..options
    });
    let all = json!({"me": {"name": "A"}, "open": {"name": "A"}});
    assert_eq!(answer, json!({"data": all, "errors": [error]}));
    assert_eq!(asked, ["{me{...a}open{...a}}fragment a on User{name}"]);
    let (answer, _) = with(AuthorizationOptions {
        enabled: false,
        ..options
    });
    assert_eq!(answer, json!({"data": all}));
}

#[test]
fn one_text_has_a_plan_for_each_of_its_grants() {
    let gateway = open();
    let query = "{ me { name } open { email } }";
    for _ in 0..2 {
        for (has, me, email) in [
            (&[][..], Value::Null, Value::Null),
            (&["user"], json!({"name": "A"}), Value::Null),
            (
                &["user", "read:email"],
                json!({"name": "A"}),
                json!({"email": "e"}),
            ),
            // Scopes that the operation does not use make no difference.
            (
                &["user", "read:email", "x"],
                json!({"name": "A"}),
                json!({"email": "e"}),
            ),
        ] {
            let (answer, _) = gateway.ask(query, has);
            assert_eq!(answer["data"], json!({"me": me, "open": email}), "{has:?}");
        }
    }
    assert_eq!(gateway.0.cache_stats().entries, 3);
}

#[test]
fn a_renamed_directive_protects_as_well_and_one_without_a_link_too() {
    let link = r#"@link(url: "https://specs.apollo.dev/authenticated/v0.1", for: SECURITY)"#;
    let import = r#"@link(url: "https://specs.apollo.dev/authenticated/v0.1", import: [{name: "@authenticated", as: "@seal"}], for: SECURITY)"#;
    let other =
        r#"@link(url: "https://specs.apollo.dev/authenticated/v0.1", as: "seal", for: SECURITY)"#;
    let sealed = |link_: &str| SDL.replace("@authenticated", "@seal").replace(link, link_);
    for sdl in [
        sealed(import),
        // The first `replace` does not change the link, because the link contains no `@authenticated`.
        sealed(other),
        SDL.replace(link, ""),
    ] {
        let gateway = Gateway::of(&sdl, AuthorizationOptions::default());
        let (answer, _) = gateway.ask("{ me { name } open { name } }", &[]);
        assert_eq!(answer["data"]["me"], Value::Null, "{answer}");
        assert_eq!(answer["data"]["open"]["name"], "A", "{answer}");
        let (answer, _) = gateway.ask("{ __schema { directives { name } types { name } } }", &[]);
        let text = answer.to_string();
        for hidden in ["authenticated", "seal", "requiresScopes", "policy"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
        assert!(text.contains("PrivateBlog"));
    }
}

#[test]
fn what_an_interface_demands_its_objects_demand() {
    let interface = "interface Post @join__type(graph: BLOG)";
    let sdl = SDL.replace(
        interface,
        &format!("{interface} @requiresScopes(scopes: \"blogs\")"),
    );
    let gateway = Gateway::of(&sdl, AuthorizationOptions::default());
    let (answer, _) = gateway.ask("{ found { ... on PublicBlog { title } __typename } }", &[]);
    assert!(!answer.to_string().contains("\"T\""), "{answer}");
    let (answer, _) = gateway.ask("{ found { ... on PublicBlog { title } } }", &["blogs"]);
    assert!(answer.to_string().contains("\"T\""), "{answer}");
}

#[test]
fn demands_that_cannot_be_read_stop_the_start() {
    for wrong in [
        "",
        "(scopes: [])",
        "(scopes: 1)",
        "(scopes: [[1]])",
        "(scope: [[\"a\"]])",
    ] {
        let sdl = SDL.replace(
            r#"@requiresScopes(scopes: [["read:email"]])"#,
            &format!("@requiresScopes{wrong}"),
        );
        let error = Supergraph::parse(&sdl).err().unwrap().to_string();
        assert!(
            error.contains("`@requiresScopes` of `User.email`"),
            "{error}"
        );
    }
}

#[test]
fn what_composition_says_of_an_interface_does_not_hold_for_its_other_objects() {
    let fields = |rule: &str| format!("{{\n  id: ID!\n  title: String\n  notes: String{rule}\n}}");
    let interface = |rule: &str| format!("interface Post @join__type(graph: BLOG) {rule}");
    let plain = interface("") + &fields("");
    assert!(SDL.contains(&plain));
    let of = |type_rule: &str, field_rule: &str| {
        let ruled = interface(type_rule) + &fields(field_rule);
        let sdl = SDL.replace(&plain, &ruled);
        let query = "{ posts { ... on PublicBlog { id notes } ... on PrivateBlog { id } } }";
        Gateway::of(&sdl, AuthorizationOptions::default()).ask(query, &[])
    };
    let open = of("", "");
    let ids = json!([{"id": "1", "notes": "N"}, {}]);
    assert_eq!(open.0["data"]["posts"], ids, "{}", open.0);
    // The rule of `PrivateBlog`, as composition repeats it.
    let scope = r#" @requiresScopes(scopes: [["notes"]])"#;
    assert_eq!(of("@authenticated ", scope), open);
    // A rule that no object has is the interface's own rule. It applies to all its objects.
    let policy = r#" @policy(policies: [["posts"]])"#;
    for (type_rule, field_rule) in [
        (format!("{policy} "), String::new()),
        (format!("@authenticated{policy} "), String::new()),
        (String::new(), policy.to_owned()),
        (String::new(), format!("{scope}{policy}")),
    ] {
        let (answer, _) = of(&type_rule, &field_rule);
        assert_ne!(answer["data"]["posts"], ids, "{type_rule} {field_rule}");
    }
}
