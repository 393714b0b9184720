//! Each request sees what its profile shows, and carries who makes it.

use super::*;

#[tokio::test]
async fn each_request_sees_what_its_own_profile_shows() {
    let server =
        |name| FakeOfferingServer { prompts: vec!["greet"], uris: vec!["a:1"], ..shop(name) };
    let (one, two) = (server("one"), server("two"));
    let (lists, requests) = (Arc::clone(&two.lists), Arc::clone(&two.contexts));
    let profile = ProfileSpec { servers: of("one"), ..ProfileSpec::default() };
    let host = builder(vec![one, two]).profiles([("agent".to_owned(), profile)]).build();
    let scope = LookupScope::in_profile("agent");
    let request = ItemRequest { scope: scope.clone(), ..ItemRequest::default() };
    // Where everything is seen both have them, and the caller has to choose.
    assert!(host.read("a:1", &ItemRequest::default()).await.is_err());
    let before = lists.load(Ordering::Relaxed);
    assert_eq!(host.prompts(&scope).await.unwrap().items.len(), 1);
    assert_eq!(host.resources(&scope).await.unwrap().items.len(), 1);
    assert!(host.templates(&scope).await.unwrap().items.is_empty());
    assert_eq!(host.find_prompt("greet", &scope).await.unwrap().name.full(), "one-greet");
    assert_eq!(host.read("a:1", &request).await.unwrap().server, "one");
    assert!(host.prompt("greet", &who("Ada"), &request).await.is_ok());
    let query = CompletionQuery {
        reference: CompletionReference::Prompt("greet".to_owned()),
        argument: "who".to_owned(),
        value: String::new(),
        context: BTreeMap::new(),
    };
    assert_eq!(host.complete(query, &request).await.unwrap().values[0], "one");
    assert!(host.find("two-echo", &scope).await.is_err_and(|e| e.kind() == ErrorKind::Denied));
    // A server that is named all the same is refused, and not contacted.
    let named = LookupScope { servers: of("two"), ..scope };
    let refused = host.prompts(&named).await.unwrap();
    assert_eq!(refused.servers[0].error.as_ref().unwrap().kind(), ErrorKind::Denied);
    let error = host.find_prompt("greet", &named).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(host.read("a:1", &ItemRequest { scope: named, ..request }).await.is_err());
    assert_eq!((lists.load(Ordering::Relaxed), requests.lock().unwrap().len()), (before, 0));
    let unknown = LookupScope::in_profile("agnet");
    assert_eq!(
        host.prompts(&unknown).await.unwrap_err().hint().unwrap(),
        "did you mean 'agent'? known profiles: agent"
    );
    assert_eq!(host.find("one-x", &unknown).await.unwrap_err().kind(), ErrorKind::Usage);
}

#[tokio::test]
async fn a_request_carries_its_caller_and_no_known_secret() {
    let one = FakeOfferingServer { uris: vec!["a:1"], prompts: vec!["greet"], ..shop("one") };
    let contexts = Arc::clone(&one.contexts);
    let host = builder(vec![one]).masker(Masker::new([("KEY", "hunter22")])).build();
    let request = ItemRequest {
        id: Some(host.new_call_id()),
        user_id: Some("ada".to_owned()),
        session: Some("s-1".to_owned()),
        metadata: who("hunter22"),
        ..ItemRequest::default()
    };
    host.read("a:1", &request).await.unwrap();
    host.prompt("greet", &who("Ada"), &ItemRequest::default()).await.unwrap();
    let (first, second) = {
        let contexts = contexts.lock().unwrap();
        (contexts[0].clone(), contexts[1].clone())
    };
    assert_eq!((&first.call_id, &*first.session_id), (request.id.as_ref().unwrap(), "s-1"));
    assert_eq!(
        (first.user_id.as_deref(), &first.metadata["who"]),
        (Some("ada"), &json!("‹secret:KEY›"))
    );
    assert_eq!((&*second.session_id, second.user_id), (host.session(), None));
    assert_ne!(second.call_id, first.call_id);
    let reserved = JsonObject::from_iter([("dev.toolhost/callId".to_owned(), json!(1))]);
    let request = ItemRequest { metadata: reserved, ..ItemRequest::default() };
    assert_eq!(host.read("a:1", &request).await.unwrap_err().kind(), ErrorKind::Usage);
}
