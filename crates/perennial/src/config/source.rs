//! Which source of a setting wins: flag, then variable, then the older operator's variable.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Error;
use crate::args::settings::Setting;

/// Where Kubernetes tells a pod its own namespace.
const POD_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

type Lookup = Box<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// What surrounds the process; the only door to the environment.
pub struct Surroundings {
    variables: Lookup,
    pod_namespace: PathBuf,
    /// Whether a person reads the log.
    pub(crate) terminal: bool,
    process: u32,
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn of_process() -> Self {
        use std::io::IsTerminal as _;
        Self::new(|name| std::env::var_os(name), POD_NAMESPACE.into(), std::io::stderr().is_terminal())
    }

    /// Any others: variables, the file with the pod's namespace, and whether a person reads the log.
    pub fn new(
        variables: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
        pod_namespace: PathBuf,
        terminal: bool,
    ) -> Self {
        Self { variables: Box::new(variables), pod_namespace, terminal, process: std::process::id() }
    }

    /// A variable that is set and not empty: a chart that renders `value: ""` means "not given".
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// A name for this process that no other on this machine has, and no other machine's.
    pub(crate) fn process_name(&self) -> String {
        format!("{}-{}", Self::host().unwrap_or_default(), self.process)
    }

    /// The name of this machine.
    pub(crate) fn host() -> Option<String> {
        nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok())
    }

    /// The namespace of the pod this runs in, if it runs in one.
    pub(crate) fn pod_namespace(&self) -> Option<String> {
        let text = std::fs::read_to_string::<&Path>(&self.pod_namespace).ok()?;
        Some(text.trim().to_owned()).filter(|name| !name.is_empty())
    }
}

/// A value and the flag or variable it came from.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) key: &'static str,
    pub(super) value: String,
}

impl Given {
    /// The error for a value that its key does not allow.
    pub(super) fn refuse(self, allowed: impl Into<String>) -> Error {
        Error::Value { key: self.key, value: self.value, allowed: allowed.into() }
    }
}

/// Looks settings up, and remembers which older variables were honoured.
pub(super) struct Sources<'a> {
    around: &'a Surroundings,
    pub(super) honoured: Vec<&'static str>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(around: &'a Surroundings) -> Self {
        Self { around, honoured: Vec::new() }
    }

    pub(super) fn around(&self) -> &'a Surroundings {
        self.around
    }

    /// The value that wins, if any was given.
    pub(super) fn find(&mut self, setting: &Setting, typed: Option<&str>) -> Result<Option<Given>, Error> {
        if let Some(value) = typed {
            return Ok(Some(Given { key: setting.flag, value: value.to_owned() }));
        }
        if let Some(given) = self.read(setting.env)? {
            return Ok(Some(given));
        }
        match setting.older {
            Some(older) => self.find_older(older),
            None => Ok(None),
        }
    }

    /// The value of an older operator's variable.
    pub(super) fn find_older(&mut self, name: &'static str) -> Result<Option<Given>, Error> {
        let given = self.read(name)?;
        if given.is_some() {
            self.honoured.push(name);
        }
        Ok(given)
    }

    /// The value that wins, through its check; the check's error says what is allowed.
    pub(super) fn checked<T>(
        &mut self,
        setting: &Setting,
        typed: Option<&str>,
        check: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Error> {
        let Some(given) = self.find(setting, typed)? else { return Ok(None) };
        check(&given.value).map(Some).map_err(|allowed| given.refuse(allowed))
    }

    /// A switch: given as a flag, or by its variable as a word.
    pub(super) fn switch(&mut self, setting: &Setting, typed: bool) -> Result<bool, Error> {
        if typed {
            return Ok(true);
        }
        let Some(given) = self.find(setting, None)? else { return Ok(false) };
        match given.value.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(true),
            "false" | "0" | "no" | "off" => Ok(false),
            _ => Err(given.refuse("true or false")),
        }
    }

    /// A variable that nobody may see.
    pub(super) fn secret(&self, name: &'static str) -> Result<Option<String>, Error> {
        let text = self.around.variable(name).map(OsString::into_string).transpose();
        text.map_err(|_| Error::Missing { what: name, remedy: "what it holds is not text in UTF-8" })
    }

    fn read(&self, name: &'static str) -> Result<Option<Given>, Error> {
        let Some(value) = self.around.variable(name) else { return Ok(None) };
        match value.into_string() {
            Ok(value) => Ok(Some(Given { key: name, value })),
            Err(raw) => Err(Error::Value {
                key: name,
                value: raw.to_string_lossy().into_owned(),
                allowed: "text in UTF-8".to_owned(),
            }),
        }
    }
}
