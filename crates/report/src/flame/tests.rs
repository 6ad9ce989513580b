use super::*;

const SCRIPT: &str = "\
tokio-worker-3 1200
\t            55aa _ZN6server5parse17h0123456789abcdefE (/opt/server)
\t            55ab server::handle::h0123456789abcdef (/opt/server)

tokio-worker-7 1201
\t            55aa server::parse::h0123456789abcdef (/opt/server)
\t            55ab server::handle::h0123456789abcdef (/opt/server)

server 1199
\tffffffff81 tcp_sendmsg ([kernel.kallsyms])
\t            7f [unknown] (/usr/lib/libc.so.6)
\t     7f2d00632d [unknown] ([unknown])

";

#[test]
fn samples_are_folded_by_thread_name_and_function() {
    insta::assert_snapshot!(stacks(SCRIPT).folded(), @r"
    server;[libc.so.6];tcp_sendmsg [kernel] 1
    tokio-worker;server::handle;server::parse 2
    ");
}

#[test]
fn the_hottest_functions_are_those_found_at_work() {
    let mut stacks = stacks(SCRIPT);
    let recursive = ["server", "walk", "walk"].map(str::to_owned);
    stacks.add(recursive.to_vec(), 5);
    let hottest = stacks.hottest(2);
    let found: Vec<(&str, u64, u64)> = hottest
        .iter()
        .map(|hot| (&*hot.function, hot.own_samples, hot.total_samples))
        .collect();
    assert_eq!(found, [("walk", 5, 5), ("server::parse", 2, 2)]);
}

/// Checks that elements and attributes are in pairs, and that the drawing loads no external resource.
fn is_self_contained(svg: &str) {
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    assert!(svg.trim_end().ends_with("</svg>"));
    let foreign = svg.replace("http://www.w3.org/2000/svg", "");
    for reference in ["http://", "https://", "href", "@import", "url("] {
        assert!(!foreign.contains(reference), "{reference} in {svg}");
    }
}

#[test]
fn widths_are_processor_time_per_request() {
    let stacks = stacks(SCRIPT);
    let drawn = svg("a <b>", &stacks, &Scale::new(&stacks, Some(90.0)));
    is_self_contained(&drawn);
    assert!(drawn.contains("a &lt;b&gt;"), "{drawn}");
    assert!(
        drawn.contains("server::parse: 60.0 us/request, 67 %"),
        "{drawn}"
    );
    let without = svg("a", &stacks, &Scale::new(&stacks, None));
    assert!(without.contains("server::parse: 67 %"), "{without}");
}

#[test]
fn a_difference_compares_what_a_request_costs_and_not_shares() {
    let variant = stacks(SCRIPT);
    let mut baseline = Stacks::default();
    let stack = ["tokio-worker", "server::handle", "server::parse"].map(str::to_owned);
    baseline.add(stack.to_vec(), 7);
    let drawn = difference_svg(
        "b against a",
        &variant,
        &Scale::new(&variant, Some(90.0)),
        &baseline,
        &Scale::new(&baseline, Some(40.0)),
    );
    is_self_contained(&drawn);
    // The function took all of 40 us before, and takes two thirds of 90 us now.
    assert!(
        drawn.contains("server::parse: 60.0 us/request, 67 %, +20.0 us/request"),
        "{drawn}"
    );
    // The function was not there before.
    assert!(drawn.contains("tcp_sendmsg [kernel]: 30.0 us/request, 33 %, +30.0 us/request"));
}

#[test]
fn nothing_sampled_is_an_empty_drawing() {
    let nothing = Stacks::default();
    is_self_contained(&svg("idle", &nothing, &Scale::new(&nothing, Some(5.0))));
    assert!(stacks("garbage").hottest(10).is_empty());
}
