//! What must be refused or must do no harm: other sites, other hosts, guesses, floods, and content that wants to be more
//! than text.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use fusee_testkit::script::Line;
use serde_json::json;

use super::client::Site;
use super::project;
use crate::support::{fusee, run};

/// A GET of the run list with exactly these header lines.
fn get_with(site: &Site, headers: &[String]) -> u16 {
    let fields: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    site.raw(&format!("GET /api/runs HTTP/1.1\r\n{fields}Connection: close\r\n\r\n")).status
}

#[test]
fn without_the_token_nothing_is_shown() {
    let (project, _) = project(&[]);
    let site = Site::start(&project, &[]);
    let host = format!("Host: {}", site.address);
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    assert_eq!(get_with(&site, &[host.clone(), bearer(&site.token)]), 200);
    assert_eq!(get_with(&site, std::slice::from_ref(&host)), 401);
    assert_eq!(get_with(&site, &[host.clone(), bearer("")]), 401);
    assert_eq!(get_with(&site, &[host.clone(), bearer(&site.token[1..])]), 401);
    assert_eq!(get_with(&site, &[host.clone(), format!("Authorization: Basic {}", site.token)]), 401);
    assert_eq!(
        get_with(&site, &[host.clone(), format!("Cookie: fusee-{}={}", site.address.port(), site.token)]),
        401
    );
    for path in
        ["/api/runs/x", "/api/runs/x/stream", "/api/openapi.json", "/api/approvals", "/api", "/api/nothing"]
    {
        let refused = site.raw(&format!("GET {path} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"));
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.json()["error"]["help"], "open the URL that fusee printed");
    }
    // The page itself holds nothing, and says what to do.
    let page = site.raw(&format!("GET /runs/x HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"));
    assert_eq!(page.status, 200);
    assert!(page.body.starts_with("<!doctype html>"), "{}", &page.body[..60]);
    let policy = page.header("content-security-policy").unwrap();
    for rule in ["default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'"] {
        assert!(policy.contains(rule), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("access-control-allow-origin"), None);
    // A browser that has the page already keeps its policy.
    let tag = page.header("etag").unwrap();
    let known =
        site.raw(&format!("GET / HTTP/1.1\r\n{host}\r\nIf-None-Match: {tag}\r\nConnection: close\r\n\r\n"));
    assert_eq!((known.status, known.header("content-security-policy")), (304, Some(policy)));
}

#[test]
fn the_token_of_an_earlier_server_is_worth_nothing() {
    let (project, _) = project(&[]);
    let old = Site::start(&project, &[]);
    let cookie = signed_in(&old);
    let port = old.address.port().to_string();
    let token = old.token.clone();
    old.running.signal(rustix::process::Signal::TERM);
    old.running.wait().exits(0);
    let site = Site::start(&project, &["--port", &port]);
    let host = format!("Host: {}", site.address);
    assert_eq!(get_with(&site, &[host.clone(), format!("Authorization: Bearer {token}")]), 401);
    assert_eq!(get_with(&site, &[host, cookie]), 401);
}

#[test]
fn a_token_file_keeps_pages_signed_in() {
    let (project, _) = project(&[]);
    let file = project.scratch("token");
    std::fs::write(&file, "a-token-of-the-users-own\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let old = Site::start(&project, &["--token-file", &file]);
    assert_eq!(old.token, "a-token-of-the-users-own");
    let cookie = signed_in(&old);
    let port = old.address.port().to_string();
    old.running.signal(rustix::process::Signal::KILL);
    old.running.wait();
    let site = Site::start(&project, &["--token-file", &file, "--port", &port]);
    assert_eq!(get_with(&site, &[format!("Host: {}", site.address), cookie]), 200);
    std::fs::write(&file, "short").unwrap();
    fusee(&project).args(["serve", "--token-file", &file]).run().exits(2);
}

/// Exchanges the token for a cookie, and returns the header line that sends it.
fn signed_in(site: &Site) -> String {
    let body = json!({ "token": site.token }).to_string();
    let (host, length) = (site.address, body.len());
    let answer = site.raw(&format!(
        "POST /api/session HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nSec-Fetch-Site: same-origin\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ));
    assert_eq!(answer.status, 204, "{answer:?}");
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(&site.token), "the cookie is not the token");
    format!("Cookie: {}", cookie.split(';').next().unwrap())
}

#[test]
fn other_hosts_and_sites_are_refused_even_with_the_token() {
    let (project, _) = project(&[]);
    let site = Site::start(&project, &[]);
    let address = site.address;
    let token = format!("Authorization: Bearer {}", site.token);
    let ours = format!("Host: {address}");
    let status = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).chain([token.clone()]).collect();
        get_with(&site, &lines)
    };
    // A name that was rebound to the loopback address.
    assert_eq!(status(&["Host: evil.example"]), 421);
    assert_eq!(status(&[&format!("Host: evil.example:{}", address.port())]), 421);
    assert_eq!(status(&[&format!("Host: 127.0.0.1:{}", address.port() ^ 1)]), 421);
    assert_eq!(status(&["Host: "]), 421);
    assert!([400, 421].contains(&status(&[])), "no host");
    assert!([400, 421].contains(&status(&[&ours, "Host: evil.example"])), "two hosts");
    let absolute = site.raw(&format!(
        "GET http://evil.example/api/runs HTTP/1.1\r\n{ours}\r\n{token}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!(absolute.status, 421);
    // Other pages.
    assert_eq!(status(&[&ours, &format!("Origin: http://{address}")]), 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1", "file://", ""] {
        assert_eq!(status(&[&ours, &format!("Origin: {origin}")]), 403, "{origin}");
    }
    assert_eq!(status(&[&ours, &format!("Origin: http://{address}"), "Origin: http://evil.example"]), 403);
    for site_kind in ["cross-site", "same-site", "odd"] {
        assert_eq!(status(&[&ours, &format!("Sec-Fetch-Site: {site_kind}")]), 403, "{site_kind}");
    }
    assert_eq!(status(&[&ours, "Sec-Fetch-Site: same-origin"]), 200);
    assert_eq!(status(&[&ours, "Sec-Fetch-Site: none"]), 200);
}

#[test]
fn a_form_of_another_site_starts_nothing() {
    let (project, model) = project(&[Line::text("Started.")]);
    let site = Site::start(&project, &["-m", &model]);
    let cookie = signed_in(&site);
    let address = site.address;
    let body = json!({ "request": "Do harm." }).to_string();
    let send = |headers: &str| {
        let length = body.len();
        site.raw(&format!(
            "POST /api/runs HTTP/1.1\r\nHost: {address}\r\n{cookie}\r\n{headers}Content-Length: {length}\r\n\
             Connection: close\r\n\r\n{body}"
        ))
        .status
    };
    // A browser says where a form comes from; without that, a cookie is not enough.
    let form = "Content-Type: text/plain\r\n";
    assert_eq!(send(&format!("{form}Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n")), 403);
    assert_eq!(send(&format!("{form}Origin: null\r\n")), 403);
    assert_eq!(send(form), 403);
    assert_eq!(send("Content-Type: application/json\r\n"), 403);
    let same = format!("Origin: http://{address}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(send(&format!("{form}{same}")), 415);
    assert_eq!(site.get("/api/runs").json(), json!([]));
    assert_eq!(send(&format!("Content-Type: application/json\r\n{same}")), 201);
}

#[test]
fn names_are_never_paths() {
    let (project, _) = project(&[]);
    let site = Site::start(&project, &[]);
    let names = [
        "..",
        "...",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        "a%2fb",
        "%ff",
        "x".repeat(65).as_str(),
        "%27;--",
    ]
    .map(str::to_owned);
    for name in names {
        for rest in [
            "",
            "/events",
            "/stream",
            "/timeline",
            "/index",
            "/context",
            "/program",
            "/export?format=events",
            "/export?format=cassette",
            "/export?format=atif",
        ] {
            let status = site.get(&format!("/api/runs/{name}{rest}")).status;
            assert!([400, 404].contains(&status), "{name}{rest}: {status}");
        }
        let status = site.get(&format!("/api/bench/jobs/{name}")).status;
        assert!([400, 404].contains(&status), "{name}: {status}");
    }
    assert_eq!(site.get("/api/runs/x/../../../../etc/passwd").status, 404);
    assert_eq!(site.get("/api/runs?project=/etc").json(), json!([]));
    let elsewhere = site.post("/api/runs", &json!({ "request": "x", "project": "/etc" }));
    assert_eq!(elsewhere.status, 400);
}

#[test]
fn bodies_and_heads_are_bounded() {
    let (project, _) = project(&[]);
    let site = Site::start(&project, &[]);
    let large = json!({ "request": "x".repeat(2 << 20) });
    let (address, token) = (site.address, &site.token);
    // Only the head says how large it is; the body need not arrive.
    let refused = site.raw(&format!(
        "POST /api/runs HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{{",
        large.to_string().len()
    ));
    assert_eq!(refused.status, 413);
    let long =
        site.raw(&format!("GET /api/runs HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n", "x".repeat(100_000)));
    assert!([400, 414, 431].contains(&long.status), "{long:?}");
    assert_eq!(site.post("/api/runs", &json!({ "request": 1 })).status, 422);
    assert_eq!(site.post("/api/runs", &json!({ "request": "x", "unknown": 1 })).status, 422);
    assert_eq!(site.post("/api/runs", &json!({})).status, 422);
    assert_eq!(site.request("POST", "/api/runs", &[("Content-Type", "application/json")], "{").status, 400);
    assert_eq!(site.request("DELETE", "/api/runs", &[], "").status, 405);
    assert_eq!(site.get("/api/runs").status, 200);
}

#[test]
fn a_read_only_server_changes_nothing() {
    let (project, model) = project(&[Line::text("Done.")]);
    run(&project, &model).args(["--run-id", "done"]).run().exits(0);
    let site = Site::start(&project, &["--read-only", "-m", &model]);
    let posts = [
        "/api/runs",
        "/api/runs/done/message",
        "/api/runs/done/approve",
        "/api/runs/done/answer",
        "/api/runs/done/stop",
        "/api/runs/done/cancel",
        "/api/runs/done/resume",
        "/api/runs/done/undo",
        "/api/runs/done/rewind",
        "/api/runs/done/fork",
        "/api/plan",
    ];
    for path in posts {
        assert_eq!(
            site.post(path, &json!({ "request": "x", "text": "x", "id": "x", "decision": "allow" })).status,
            403,
            "{path}"
        );
    }
    assert_eq!(site.get("/api/runs/done").json()["state"], "completed");
    // Signing in is still possible.
    signed_in(&site);
}

#[test]
fn other_machines_are_let_in_only_on_purpose() {
    let (project, _) = project(&[]);
    let file = project.scratch("token");
    std::fs::write(&file, "a-token-of-the-users-own").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let refused = |args: &[&str]| {
        let outcome = fusee(&project).args(["serve", "--bind", "0.0.0.0"]).args(args).run().exits(2);
        assert!(outcome.stderr.contains("pass --token-file and --allow-host"), "{}", outcome.stderr);
    };
    refused(&[]);
    refused(&["--token-file", &file]);
    refused(&["--allow-host", "build.example"]);
    let site = Site::start(&project, &["--allow-host", "build.example"]);
    let token = format!("Authorization: Bearer {}", site.token);
    let port = site.address.port();
    assert_eq!(get_with(&site, &[format!("Host: build.example:{port}"), token.clone()]), 200);
    assert_eq!(get_with(&site, &[format!("Host: other.example:{port}"), token]), 421);
}

#[test]
fn streams_that_are_idle_or_never_read_disturb_nobody() {
    let (project, model) = project(&[
        Line::call(
            "shell",
            json!({ "command": "yes 0123456789012345678901234567890123456789 | head -c 3000000" }),
        ),
        Line::text("Done."),
    ]);
    // A thousand sockets need more files than a process usually may open.
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: files.maximum, maximum: files.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, most).unwrap();
    let site = Site::start(&project, &["-m", &model]);
    let started = site.post("/api/runs", &json!({ "request": "Be loud.", "approve": "ask" })).json();
    let id = started["run"].as_str().unwrap().to_owned();
    let question = site.wait_for_question();
    // A thousand streams, none of which is ever read.
    let (address, token) = (site.address, &site.token);
    let mut streams = Vec::new();
    for _ in 0..1_000 {
        let mut stream = site.connect();
        let head = format!(
            "GET /api/runs/{id}/stream?from=0 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        streams.push(stream);
    }
    let mut refused = 0;
    for stream in &mut streams {
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        match &status[9..12] {
            b"200" => {}
            b"503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert!(refused >= 500, "only {refused} of 1000 streams were refused");
    // Requests are answered and the run ends.
    let path = format!("/api/runs/{id}/approve");
    let answered = site.post(&path, &json!({ "id": question["id"], "decision": "allow" }));
    assert_eq!(answered.status, 200, "{answered:?}");
    let since = Instant::now();
    while site.get(&format!("/api/runs/{id}")).json()["state"] != "completed" {
        assert!(since.elapsed() < Duration::from_secs(60), "the run does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Their places are free again once they are gone.
    drop(streams);
    let since = Instant::now();
    loop {
        let again = site.raw(&format!(
            "GET /api/runs/{id}/stream?from=0 HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        ));
        if again.status == 200 {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the places are not given back");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn content_stays_text_and_downloads_are_attachments() {
    let script = "<script>alert(1)</script>";
    let (project, model) = project(&[
        Line::call(
            "write_file",
            json!({ "path": format!("{}.txt", "<img src=x onerror=alert(1)>".replace('/', "")), "content": script }),
        ),
        Line::text(script),
    ]);
    run(&project, &model).args(["--run-id", "hostile"]).run().exits(0);
    let site = Site::start(&project, &[]);
    for path in ["/api/runs/hostile", "/api/runs/hostile/events", "/api/runs", "/api/runs/hostile/context"] {
        let answer = site.get(path);
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(
            answer.header("content-security-policy"),
            Some("default-src 'none'; frame-ancestors 'none'; sandbox")
        );
    }
    for format in ["events", "markdown", "cassette", "atif"] {
        let answer = site.get(&format!("/api/runs/hostile/export?format={format}"));
        assert!(answer.body.contains("alert(1)"), "{answer:?}");
        assert!(answer.header("content-disposition").unwrap().starts_with("attachment; filename=\"hostile."));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}
