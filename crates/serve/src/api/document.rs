//! Routes and their descriptions, added together so that the OpenAPI document cannot miss one.

use axum::Router;
use axum::handler::Handler;
use axum::routing::{get, post};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::problem::ProblemBody;
use crate::site::Site;

type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The routes and their descriptions.
pub(super) struct Api {
    pub(super) router: Router<Site>,
    paths: Map<String, Value>,
    schemas: SchemaGenerator,
}

/// What a route takes and returns.
pub(super) struct Operation {
    summary: &'static str,
    query: Option<Schema>,
    body: Option<SchemaOf>,
    status: u16,
    content: Option<(&'static str, SchemaOf)>,
    keyed: bool,
}

impl Operation {
    pub(super) fn new(summary: &'static str) -> Self {
        Self { summary, query: None, body: None, status: 200, content: None, keyed: false }
    }

    /// The fields of `T` are parameters of the query.
    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        self.query = Some(settings.into_generator().into_root_schema_for::<T>());
        self
    }

    /// The body is a `T`.
    pub(super) fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some(|schemas| schemas.subschema_for::<T>());
        self
    }

    /// A success is a `T`.
    pub(super) fn returns<T: JsonSchema>(mut self, status: u16) -> Self {
        self.status = status;
        self.content = Some(("application/json", |schemas| schemas.subschema_for::<T>()));
        self
    }

    /// A success has no content.
    pub(super) fn empty(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// A success is a stream of this type.
    pub(super) fn streams(mut self, content: &'static str) -> Self {
        self.content = Some((content, |schemas| schemas.subschema_for::<String>()));
        self
    }

    /// The route honours idempotency keys.
    pub(super) fn keyed(mut self) -> Self {
        self.keyed = true;
        self
    }

    fn describe(self, path: &str, method: &str, schemas: &mut SchemaGenerator) -> Value {
        let mut parameters: Vec<Value> = Vec::new();
        let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        for name in names {
            parameters.push(json!({
                "name": name, "in": "path", "required": true, "schema": { "type": "string" },
            }));
        }
        if let Some(query) = &self.query {
            let required = query.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            let properties = query.get("properties").and_then(Value::as_object);
            for (name, schema) in properties.into_iter().flatten() {
                let required = required.iter().any(|other| other == name);
                parameters
                    .push(json!({ "name": name, "in": "query", "required": required, "schema": schema }));
            }
        }
        if self.keyed {
            parameters.push(json!({
                "name": "Idempotency-Key", "in": "header", "required": false,
                "description": "A request that is sent again with the same key gets the answer of the first one.",
                "schema": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$" },
            }));
        }
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let mut responses = Map::new();
        let success = match self.content {
            Some((content, schema)) => {
                json!({ "description": "Success", "content": { content: { "schema": schema(schemas) } } })
            }
            None => json!({ "description": "Success" }),
        };
        responses.insert(self.status.to_string(), success);
        let error = |what: &str| json!({ "description": what, "content": { "application/json": { "schema": problem } } });
        let mut errors = vec![
            ("400", "The query or the body cannot be read"),
            ("401", "Missing or invalid token"),
            ("403", "Another site, or a read-only server"),
            ("404", "There is no such run, job or route"),
            ("409", "The state does not allow it"),
            ("421", "Sent to another host"),
            ("503", "The journal cannot be read, or there are too many streams"),
        ];
        if method == "post" {
            errors.extend([
                ("408", "The body did not arrive in time"),
                ("413", "The body is too large"),
                ("415", "The body is not JSON"),
                ("422", "The body has the wrong shape, or inputs are wrong"),
                ("502", "The model cannot be reached"),
            ]);
        }
        for (status, what) in errors {
            responses.insert(status.to_owned(), error(what));
        }
        let mut operation =
            json!({ "summary": self.summary, "parameters": parameters, "responses": responses });
        if let Some(body) = self.body {
            operation["requestBody"] =
                json!({ "required": true, "content": { "application/json": { "schema": body(schemas) } } });
        }
        operation
    }
}

impl Api {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12()
            .with(|settings| settings.definitions_path = "/components/schemas".into());
        let mut schemas = settings.into_generator();
        schemas.subschema_for::<ProblemBody>();
        Self { router: Router::new(), paths: Map::new(), schemas }
    }

    /// Adds a route that reads.
    pub(super) fn get<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, Site>,
        operation: Operation,
    ) -> Self {
        let router = self.router.clone().route(path, get(handler));
        self.described(router, path, "get", operation)
    }

    /// Adds a route that changes something.
    pub(super) fn post<T: 'static>(
        self,
        path: &str,
        handler: impl Handler<T, Site>,
        operation: Operation,
    ) -> Self {
        let router = self.router.clone().route(path, post(handler));
        self.described(router, path, "post", operation)
    }

    fn described(mut self, router: Router<Site>, path: &str, method: &str, operation: Operation) -> Self {
        let described = operation.describe(path, method, &mut self.schemas);
        let entry = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Value::Object(entry) = entry {
            entry.insert(method.to_owned(), described);
        }
        Self { router, ..self }
    }

    /// The OpenAPI document.
    pub(super) fn document(&self) -> Value {
        let schemas: Map<String, Value> = self.schemas.clone().take_definitions(true);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "fusee serve",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "Watch, answer, start and compare runs. Events have the schema of `schema/events.schema.json`.",
                "license": { "name": "Apache-2.0 OR MIT", "identifier": "Apache-2.0 OR MIT" },
            },
            "security": [{ "token": [] }],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            },
        })
    }
}
