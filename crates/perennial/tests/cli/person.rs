//! Somebody who types commands.

use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use perennial::args::{Args, Command};
use perennial::cli::{self, Screen};
use perennial::config::Surroundings;

use crate::world::World;

/// What was said, and what the command exited with.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: u8,
}

impl Heard {
    /// It went well, and this is what was said.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// It did not, and this is what was said about it.
    #[track_caller]
    pub(crate) fn bad(self) -> String {
        assert_ne!(self.code, 0, "{self:?}");
        self.err
    }

    /// All of it, for a snapshot.
    pub(crate) fn all(&self) -> String {
        format!("{}\n---- stderr\n{}\n---- exit {}", self.out.trim_end(), self.err.trim_end(), self.code)
    }
}

/// Who types, and on what.
#[derive(Clone)]
pub(crate) struct Person {
    pub(crate) kubeconfig: PathBuf,
    flags: Vec<String>,
    width: Option<usize>,
    colour: bool,
    answer: Option<String>,
}

impl Person {
    /// One with this kubeconfig, whose output goes into a pipe.
    pub(crate) fn with(kubeconfig: &Path, namespace: &str) -> Self {
        let flags = ["--kubeconfig", &kubeconfig.display().to_string(), "-n", namespace];
        let flags = flags.into_iter().chain(["--installation", "perennial"]).map(str::to_owned).collect();
        Self { kubeconfig: kubeconfig.to_owned(), flags, width: None, colour: false, answer: None }
    }

    /// At a terminal of this width.
    pub(crate) fn at_terminal(&self, width: usize) -> Self {
        Self { width: Some(width), ..self.clone() }
    }

    /// At one with colours.
    pub(crate) fn in_colour(&self) -> Self {
        Self { colour: true, ..self.clone() }
    }

    /// Who answers questions like this.
    pub(crate) fn answering(&self, answer: &str) -> Self {
        Self { answer: Some(format!("{answer}\n")), ..self.clone() }
    }

    /// Who says by this policy what is kept.
    pub(crate) fn under(&self, policy: &Path) -> Self {
        let flags = ["--policy".to_owned(), policy.display().to_string()];
        Self { flags: self.flags.iter().cloned().chain(flags).collect(), ..self.clone() }
    }

    /// Runs a command.
    pub(crate) async fn says(&self, line: &str) -> Heard {
        let person = self.answer.clone().map(|answer| Box::new(Cursor::new(answer)) as Box<_>);
        self.answers(line, person).await
    }

    /// Runs a command, and says yes to its question once `meanwhile` is over. That needs a thread of its own.
    pub(crate) async fn says_yes_after(
        &self,
        line: &str,
        meanwhile: impl Future<Output = ()> + Send + 'static,
    ) -> Heard {
        let (asked, question) = tokio::sync::oneshot::channel();
        let (over, answer) = std::sync::mpsc::channel();
        tokio::spawn(async move {
            question.await.unwrap();
            meanwhile.await;
            over.send(()).unwrap();
        });
        self.answers(line, Some(Box::new(Hesitant { asked: Some(asked), answer, yes: Cursor::new("yes\n") })))
            .await
    }

    async fn answers(&self, line: &str, person: Option<Box<dyn BufRead + Send>>) -> Heard {
        let words = line.split_whitespace().map(str::to_owned);
        let list = std::iter::once("perennial".to_owned()).chain(words).chain(self.flags.iter().cloned());
        let Command::Operate(operation) = Args::try_from_list(list).unwrap().command else {
            panic!("{line} is no command for people")
        };
        let (out, err) = (Paper::default(), Paper::default());
        let mut screen =
            Screen::new(Box::new(out.clone()), Box::new(err.clone()), self.width, self.colour, person);
        let around = Surroundings::new(|_| None, PathBuf::from("/nonexistent"), false);
        let code = cli::run(*operation, &around, &mut screen).await;
        drop(screen);
        Heard { out: out.text(), err: err.text(), code }
    }
}

impl World {
    /// An administrator.
    pub(crate) fn person(&self) -> Person {
        Person::with(&self.plane.kubeconfig_for_admin().unwrap(), self.namespace())
    }

    /// One who says that the default policy is in force: keepers of these tests that are alone have no Lease to say so.
    pub(crate) fn hand(&self) -> Person {
        self.person().under(&self.default_policy())
    }

    /// A file with the default policy.
    pub(crate) fn default_policy(&self) -> PathBuf {
        let file = self.file("default-policy.yaml");
        std::fs::write(&file, "{}").unwrap();
        file
    }

    /// A file in this world's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.plane.folder().join(format!("{}-{name}", self.namespace()))
    }
}

/// Somebody who says yes, but not before something else happened.
struct Hesitant {
    asked: Option<tokio::sync::oneshot::Sender<()>>,
    answer: std::sync::mpsc::Receiver<()>,
    yes: Cursor<&'static str>,
}

impl Read for Hesitant {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.fill_buf()?;
        self.yes.read(into)
    }
}

impl BufRead for Hesitant {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if let Some(asked) = self.asked.take() {
            asked.send(()).unwrap();
            self.answer.recv().unwrap();
        }
        self.yes.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.yes.consume(amount);
    }
}

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Paper {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl std::io::Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What differs from run to run.
const FILTERS: [(&str, &str); 8] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uid]"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "[time]"),
    (r"perennial-[0-9a-f]{8}\b", "[namespace]"),
    (r"\b[0-9a-f]{32}\b", "[digest]"),
    (r"\b[0-9a-f]{8}\b", "[digest]"),
    (r"\b\d+m?\d*s {2,}", "[age]   "),
    (r"\b\d+m?\d*s\b", "[age]"),
    (r#"resourceVersion"?: ?"?\d+"?"#, "resourceVersion: [version]"),
];

/// Compares with a snapshot, without what differs from run to run.
#[track_caller]
pub(crate) fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    for (pattern, replacement) in FILTERS {
        settings.add_filter(pattern, replacement);
    }
    // Colours, so that a person can read them in a snapshot.
    let text = text.replace('\u{1b}', "␛");
    settings.bind(|| insta::assert_snapshot!(name, text));
}
