use axum::Form;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::auth::{Caller, Role};
use crate::problem::Problem;

/// The form of a change. Every change comes by one: accounts that may only read are refused, and so is a form without the token.
pub(crate) struct Operation<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Operation<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let caller = request.extensions().get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Problem::refused(StatusCode::FORBIDDEN, "nobody has said who you are"))?;
        if caller.user.role < Role::Operate {
            return Err(Problem::read_only_role());
        }
        let unread = |_| Problem::bad("the form is incomplete, or too long; open the page anew, and try again");
        let Form(fields): Form<Vec<(String, String)>> = Form::from_request(request, app).await.map_err(unread)?;
        let given = fields.iter().find(|(name, _)| name == "token").map(|(_, token)| &**token).unwrap_or_default();
        if !app.csrf.is_token(&caller.subject, given) {
            let problem = "the form is not of this session; open the page anew, and try again";
            return Err(Problem::refused(StatusCode::FORBIDDEN, problem));
        }
        let fields = fields.into_iter().filter(|(name, _)| name != "token");
        let form = serde_json::Value::Object(fields.map(|(name, value)| (name, value.into())).collect());
        serde_json::from_value(form)
            .map(Self)
            .map_err(|_| Problem::bad("the form is incomplete; open the page anew, and try again"))
    }
}
