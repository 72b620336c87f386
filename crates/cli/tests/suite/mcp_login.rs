//! `fusee mcp-login`: OAuth with PKCE against an authorization server on this machine that checks everything it is sent.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use fusee_testkit::events::of_type;
use fusee_testkit::project::{Project, Running};
use fusee_testkit::script::Line;
use serde_json::{Value, json};

use crate::support::{fusee, run_json};

/// An MCP server with its own authorization server. Tokens are valid for the number of requests in argv[1] and can be
/// renewed once. It prints its port.
const SERVER: &str = r#"
import base64, hashlib, json, sys, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
uses = int(sys.argv[1])
clients, codes, tokens, renewals = {}, {}, {}, {}
# A client that was registered by hand: its secret and where it may send the browser. Others cannot register then.
secret = None
if len(sys.argv) > 2:
    secret = sys.argv[2]
    clients["registered"] = [sys.argv[3]]
def issue():
    access, renewal = "access-token-%d" % (len(tokens) + 1), "renewal-token-%d" % (len(tokens) + 1)
    tokens[access], renewals[renewal] = uses, True
    return {"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": renewal}
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def origin(self): return "http://127.0.0.1:%d" % self.server.server_port
    def answer(self, status, body=None, **headers):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path.startswith("/.well-known/oauth-protected-resource"):
            self.answer(200, {"resource": self.origin() + "/mcp", "authorization_servers": [self.origin()]})
        elif url.path == "/.well-known/oauth-authorization-server":
            known = {"issuer": self.origin(), "authorization_endpoint": self.origin() + "/authorize",
                "token_endpoint": self.origin() + "/token",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"]}
            if not secret: known["registration_endpoint"] = self.origin() + "/register"
            self.answer(200, known)
        elif url.path == "/authorize":
            assert query["code_challenge_method"] == "S256" and query["redirect_uri"] in clients[query["client_id"]]
            code = "code-%d" % len(codes)
            codes[code] = (query["code_challenge"], query["client_id"], query["redirect_uri"])
            self.answer(302, location=query["redirect_uri"] + "?" + urllib.parse.urlencode({"code": code, "state": query["state"]}))
        else: self.answer(405)
    def do_DELETE(self): self.answer(200)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if secret and self.path == "/token":
            given = base64.b64decode(self.headers.get("authorization", "").removeprefix("Basic ")).decode()
            if given != "registered:" + secret: self.answer(401, {"error": "invalid_client"}); return
        if self.path == "/register" and not secret:
            client = "client-%d" % len(clients)
            clients[client] = json.loads(body)["redirect_uris"]
            self.answer(201, {"client_id": client, "redirect_uris": clients[client]})
        elif self.path == "/token":
            form = dict(urllib.parse.parse_qsl(body))
            if form["grant_type"] == "refresh_token":
                known = renewals.pop(form["refresh_token"], None)
                if known and len(tokens) < 2: self.answer(200, issue())
                else: self.answer(400, {"error": "invalid_grant"})
                return
            challenge, client, redirect = codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == challenge
            assert (form.get("client_id", "registered"), form["redirect_uri"]) == (client, redirect)
            self.answer(200, issue())
        else:
            token = self.headers.get("authorization", "").removeprefix("Bearer ")
            if tokens.get(token, 0) <= 0:
                self.answer(401, www_authenticate='Bearer resource_metadata="%s/.well-known/oauth-protected-resource"' % self.origin())
                return
            tokens[token] -= 1
            message = json.loads(body)
            method = message["method"]
            if "id" not in message: self.answer(202); return
            if method == "initialize":
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
            elif method == "tools/list": result = {"tools": [{"name": "who", "inputSchema": {"type": "object"}}]}
            elif method == "tools/call": result = {"content": [{"type": "text", "text": "called with " + token}]}
            else: self.answer(400); return
            self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Secret of the client that is registered by hand.
const SECRET: &str = "a-secret-of-the-client";

struct Setup {
    project: Project,
    server: Running,
}

fn setup(uses: &str) -> Setup {
    setup_with(&[uses], "")
}

/// A server with these arguments, and further settings of it.
fn setup_with(arguments: &[&str], settings: &str) -> Setup {
    let project = Project::new().with("server.py", SERVER);
    let mut server = project.command("python3").args(["server.py"]).args(arguments).start();
    server.wait_for_stdout("port", |text| text.contains('\n'));
    let port = server.stdout_so_far().trim().to_owned();
    let folder = project.home().join(".config/fusee");
    std::fs::create_dir_all(&folder).unwrap();
    let settings =
        format!("[mcp.web]\nurl = \"http://127.0.0.1:{port}/mcp\"\n{settings}[mcp.prog]\ncommand = \"x\"\n");
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    Setup { project, server }
}

/// Logs in: opens the printed address like a browser, which follows the redirect back to the command.
fn log_in(project: &Project) -> String {
    let mut login = fusee(project).args(["mcp-login", "web"]).env("WEB_SECRET", SECRET).start();
    login.wait_for_stdout("address", |text| text.contains('\n'));
    let address = login.stdout_so_far().trim().to_owned();
    assert!(address.contains("code_challenge="), "{address}");
    let page = visit(project, &address);
    assert_eq!(login.wait().exits(0).stdout, format!("{address}\nLogged in at `web`.\n"));
    page
}

/// Opens an address like a browser; returns the page that it ends at.
fn visit(project: &Project, address: &str) -> String {
    let browser = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
    project.command("python3").args(["-c", browser, address]).run().exits(0).stdout
}

fn call(project: &Project) -> (Vec<String>, String) {
    let script = project.script(&[Line::call("web_who", json!({})), Line::text("Done.")]);
    let ran = run_json(project, &script).env("WEB_SECRET", SECRET).run().exits(0);
    let content = |result: &&Value| result["content"].as_str().unwrap().to_owned();
    (of_type(&ran.events(), "tool_result").iter().map(content).collect(), ran.stderr)
}

fn token_files(project: &Project) -> Vec<std::path::PathBuf> {
    let folder = project.home().join(".local/state/fusee/mcp");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.to_string_lossy().ends_with(".login.json")).collect()
}

#[test]
fn a_login_gives_a_token_that_is_kept_for_the_user_only_and_sent() {
    let Setup { project, server: _server } = setup("100");
    let (results, stderr) = call(&project);
    assert!(
        stderr.contains(
            "`web` cannot be used: it wants a login; continuing without it; log in with `fusee mcp-login web`"
        ),
        "{stderr}"
    );
    assert!(results[0].contains("There is no tool"), "{results:?}");
    assert_eq!(log_in(&project).trim(), "You are logged in and can close this page.");
    let files = token_files(&project);
    assert_eq!(files.len(), 1);
    assert_eq!(std::fs::metadata(&files[0]).unwrap().permissions().mode() & 0o777, 0o600);
    // The server repeats its token, which is redacted like every key.
    assert_eq!(call(&project).0, ["called with [redacted]"]);
    assert_eq!(
        fusee(&project).args(["mcp-login", "web", "--remove"]).run().exits(0).stdout,
        "The token is deleted.\n"
    );
    assert!(token_files(&project).is_empty());
}

#[test]
fn a_token_is_renewed_once_it_is_refused_and_then_the_user_is_asked_to_log_in() {
    let Setup { project, server: _server } = setup("3");
    log_in(&project);
    // Connecting takes more requests than the first token is good for; the second one is used up by the call.
    let (results, stderr) = call(&project);
    assert_eq!(results, ["called with access-token-2"], "{stderr}");
    assert!(call(&project).1.contains("it wants a login"));
}

#[test]
fn a_login_needs_a_configured_server_with_a_url() {
    let Setup { project, server: _server } = setup("1");
    let fails = |name: &str| fusee(&project).args(["mcp-login", name]).run().exits(2).stderr;
    assert!(fails("wbe").contains("no MCP server `wbe` is configured"));
    assert!(fails("prog").contains("only servers with a `url` have a login"));
}

#[test]
fn a_client_that_was_registered_by_hand_logs_in_and_renews_its_token() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let settings = |secret: &str| {
        format!("client_id = \"registered\"\nclient_secret = \"{secret}\"\nredirect_port = {port}\n")
    };
    let redirect = format!("http://127.0.0.1:{port}/callback");
    let arguments = ["3", SECRET, redirect.as_str()];
    let Setup { project, server: _server } = setup_with(&arguments, &settings("$WEB_SECRET-x"));
    let mut login = fusee(&project).args(["mcp-login", "web"]).env("WEB_SECRET", SECRET).start();
    login.wait_for_stdout("address", |text| text.contains('\n'));
    assert_eq!(visit(&project, login.stdout_so_far().trim()).trim(), "The login failed.");
    assert!(login.wait().exits(1).stderr.contains("no login at `web`"));

    let file = project.home().join(".config/fusee/config.toml");
    let corrected = std::fs::read_to_string(&file).unwrap().replace("$WEB_SECRET-x", "$WEB_SECRET");
    std::fs::write(&file, corrected).unwrap();
    assert_eq!(log_in(&project).trim(), "You are logged in and can close this page.");
    // The first token is used up by connecting, and is renewed with the secret.
    let (results, stderr) = call(&project);
    assert_eq!(results, ["called with access-token-2"], "{stderr}");
    for file in token_files(&project) {
        assert!(!std::fs::read_to_string(file).unwrap().contains(SECRET));
    }
}
