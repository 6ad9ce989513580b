use gateway_federation::{ErrorPolicies, OperationOptions, Operations, Supergraph};

use super::*;

fn engine() -> Engine {
    let sdl = include_str!("../../../../services/planets/supergraph.graphql");
    let supergraph = Arc::new(Supergraph::parse(sdl).unwrap());
    Engine::Federated {
        operations: Arc::new(Operations::new(supergraph, OperationOptions::default())),
        policies: Arc::new(ErrorPolicies::default()),
    }
}

fn order(engine: &Engine, query: &str) -> Order {
    Order {
        engine: engine.clone(),
        query: query.to_owned(),
        operation_name: None,
        overrides: Overrides::default(),
        grants: None,
    }
}

/// More selections than the small effort allows.
fn large() -> String {
    let fields: String = (0..1_100).map(|index| format!("a{index}:name ")).collect();
    format!("{{locations{{{fields}}}}}")
}

/// Planning without threads. A test does the work itself.
fn planning(large_max: usize) -> Planning {
    Planning::without_threads(large_max, Arc::default())
}

fn allowed(queue_size: usize) -> Allowed {
    Allowed {
        queue_size,
        timeout: Duration::from_secs(60),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(future)
}

#[test]
fn beyond_the_queue_is_turned_away_and_who_leaves_makes_room() {
    let (planning, engine) = (planning(1), engine());
    let submit = || planning.submit(order(&engine, "{locations{id}}"), allowed(2));
    let first = submit().unwrap();
    let _second = submit().unwrap();
    assert_eq!(submit().err(), Some(NotPlanned::Overloaded));
    assert_eq!(planning.queued(), 2);
    drop(first);
    assert_eq!(planning.queued(), 1);
    assert!(submit().is_ok());
}

#[test]
fn small_ones_pass_large_ones() {
    let (planning, engine) = (planning(1), engine());
    let submit = |query: &str| planning.submit(order(&engine, query), allowed(9)).unwrap();
    let (_one, mut first) = submit(&large());
    let (_two, mut second) = submit(&large().replace("a0:", "b0:"));
    let (_three, mut small) = submit("{locations{id}}");
    // The first job is large, so it waits in the second queue.
    assert!(planning.0.work_once());
    assert_eq!(planning.queued(), 3);
    // Simulates another thread that works on the first job.
    let taken = planning.0.lock().next(1);
    assert!(taken.as_ref().is_some_and(|(_, is_large)| *is_large));
    assert!(planning.0.work_once());
    assert!(planning.0.work_once());
    assert!(small.try_recv().unwrap().is_ok());
    assert!(second.try_recv().is_err() && first.try_recv().is_err());
    // This thread may take no job while the first one runs.
    assert_eq!(planning.queued(), 1);
    assert!(planning.0.lock().next(1).is_none());
    planning.0.lock().large_running = 0;
    assert!(planning.0.work_once());
    assert!(second.try_recv().unwrap().is_ok());
    drop(taken);
}

#[test]
fn a_large_one_is_not_held_up_by_small_ones() {
    let (planning, engine) = (planning(1), engine());
    let submit = |query: &str| planning.submit(order(&engine, query), allowed(9)).unwrap();
    let (_one, mut large) = submit(&large());
    let (_two, _first) = submit("{locations{id}}");
    let (_three, mut second) = submit("{locations{name}}");
    assert!(planning.0.work_once() && planning.0.work_once());
    assert!(large.try_recv().unwrap().is_ok());
    assert!(second.try_recv().is_err());
}

#[test]
fn who_waits_too_long_is_turned_away() {
    let (planning, engine) = (planning(1), engine());
    let allowed = Allowed {
        queue_size: 9,
        timeout: Duration::from_millis(1),
    };
    let outcome = block_on(planning.plan(order(&engine, "{locations{id}}"), allowed));
    assert_eq!(outcome.err(), Some(NotPlanned::Overloaded));
    assert_eq!(planning.queued(), 0);
}

#[test]
fn without_a_client_nothing_waits() {
    let (planning, engine) = (planning(1), engine());
    block_on(without_client(async {
        let order = order(&engine, "{locations{id}}");
        let outcome = planning.plan(order, allowed(9)).await;
        assert_eq!(outcome.err(), Some(NotPlanned::ClientGone));
    }));
    assert_eq!(planning.queued(), 0);
}

#[test]
fn a_client_that_leaves_while_it_waits_is_not_planned_for() {
    let (planning, engine) = (planning(1), engine());
    let mut waiting = Box::pin(planning.plan(order(&engine, "{locations{id}}"), allowed(9)));
    block_on(async {
        let poll = std::future::poll_fn(|context| {
            assert!(waiting.as_mut().poll(context).is_pending());
            Poll::Ready(())
        });
        poll.await;
    });
    assert_eq!(planning.queued(), 1);
    block_on(without_client(async {
        assert_eq!(waiting.await.err(), Some(NotPlanned::ClientGone));
    }));
    assert_eq!(planning.queued(), 0);
}

#[test]
fn threads_answer_and_what_they_learned_is_remembered() {
    let planning = Planning::start(1, Arc::default()).unwrap();
    let engine = engine();
    block_on(async {
        for query in ["{locations{id}}", "{nothing}", &large()] {
            let outcome = planning.plan(order(&engine, query), allowed(9)).await;
            let requested = OperationRequest {
                query,
                operation_name: None,
                overrides: &Overrides::default(),
                grants: None,
            };
            let known = engine.find(&requested).unwrap();
            assert_eq!(outcome.unwrap().is_ok(), known.is_ok(), "{query}");
        }
    });
}
