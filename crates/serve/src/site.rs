//! What the routes work on: the journals of the user's projects, the runs that this process works on, and what is known of
//! each run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use fusee::engine::run::{self, RunControl};
use fusee::journal::{Journal, RunId, RunRow, RunStatus};
use fusee::launch::Launcher;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::access::Access;
use crate::event_hub::EventHub;
use crate::journal_watch::JournalWatch;
use crate::live_runs::LiveRuns;
use crate::outline::Outline;
use crate::problem::Problem;
use crate::request_key::RequestKeys;

/// Maximum number of event streams.
const STREAMS: usize = 256;

/// Number of runs whose outline is kept.
const OUTLINES: usize = 256;

/// Events read at a time; other readers get their turn in between.
const PAGE: usize = 500;

/// The shared state of a server. Clones share it.
#[derive(Clone)]
pub(crate) struct Site(Arc<SiteState>);

/// The state behind [`Site`].
pub(crate) struct SiteState {
    pub(crate) launcher: Arc<dyn Launcher>,
    pub(crate) access: Access,
    pub(crate) read_only: bool,
    pub(crate) live: LiveRuns,
    /// Ids of the runs that were started, by idempotency key.
    pub(crate) keys: RequestKeys<String>,
    pub(crate) streams: Arc<Semaphore>,
    /// Questions that were answered here and may not be resolved yet.
    answered: Mutex<HashSet<(PathBuf, RunId, String)>>,
    journals: Mutex<HashMap<PathBuf, OpenJournal>>,
    watches: Mutex<HashMap<PathBuf, JournalWatch>>,
    outlines: Mutex<VecDeque<(OutlineKey, SharedOutline)>>,
    feeds: Mutex<HashMap<(PathBuf, RunId), LiveSource>>,
}

/// The feed of a run of this process, as long as somebody watches it.
struct LiveSource {
    control: Arc<RunControl>,
    feed: Weak<EventHub>,
}

/// An outline that several requests may extend.
pub(crate) type SharedOutline = Arc<Mutex<Outline>>;

/// A run may be removed and its id be used again, but not with the same start.
type OutlineKey = (PathBuf, RunId, i64);

struct OpenJournal {
    journal: Journal,
    /// Identity of the file, which may be replaced.
    inode: u64,
}

/// A run and where it is.
#[derive(Clone)]
pub(crate) struct FoundRun {
    /// Directory of its project.
    pub(crate) project: PathBuf,
    pub(crate) journal: Journal,
    pub(crate) row: RunRow,
}

impl FoundRun {
    pub(crate) fn id(&self) -> &RunId {
        &self.row.id
    }

    /// Whether the run has not ended and some process works on it.
    pub(crate) fn is_active(&self) -> bool {
        self.row.status == RunStatus::Open && self.journal.is_active(&self.row.id)
    }
}

impl Deref for Site {
    type Target = SiteState;

    fn deref(&self) -> &SiteState {
        &self.0
    }
}

impl Site {
    pub(crate) fn new(launcher: Arc<dyn Launcher>, access: Access, read_only: bool) -> Self {
        Self(Arc::new(SiteState {
            launcher,
            access,
            read_only,
            live: LiveRuns::default(),
            keys: RequestKeys::default(),
            streams: Arc::new(Semaphore::new(STREAMS)),
            answered: Mutex::default(),
            journals: Mutex::default(),
            watches: Mutex::default(),
            outlines: Mutex::default(),
            feeds: Mutex::default(),
        }))
    }

    /// Runs work that reads files on a thread where that blocks nobody.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let site = self.clone();
        let read = tokio::task::spawn_blocking(move || work(&site)).await;
        read.unwrap_or_else(|lost| Err(Problem::failed(lost.to_string())))
    }
}

impl SiteState {
    /// Directories of the projects whose runs are listed, that of the server first.
    pub(crate) fn projects(&self) -> Vec<PathBuf> {
        let own = self.launcher.directory().to_owned();
        let others = self.launcher.projects().into_iter().filter(|project| *project != own);
        std::iter::once(own.clone()).chain(others).collect()
    }

    /// The directory of a project that is served here, by default the server's own.
    pub(crate) fn project(&self, named: Option<&str>) -> Result<PathBuf, Problem> {
        let Some(named) = named else { return Ok(self.launcher.directory().to_owned()) };
        let known = self.projects().into_iter().find(|known| known.as_os_str() == named);
        known.ok_or_else(|| Problem::bad_request("this project is not served here"))
    }

    /// The journal of a project; `None` if nothing has been run there.
    pub(crate) fn journal(&self, project: &Path) -> Result<Option<Journal>, Problem> {
        let mut known = self.journals.lock();
        let inode = |journal: &Journal| std::fs::metadata(journal.path()).map(|found| found.ino()).ok();
        if let Some(open) = known.get(project)
            && inode(&open.journal) == Some(open.inode)
        {
            return Ok(Some(open.journal.clone()));
        }
        known.remove(project);
        let Some(journal) = self.launcher.journal(project)? else { return Ok(None) };
        if let Some(inode) = inode(&journal) {
            known.insert(project.to_owned(), OpenJournal { journal: journal.clone(), inode });
        }
        Ok(Some(journal))
    }

    /// Looks up a run, in one project or in all of them.
    pub(crate) fn find(&self, run: &str, project: Option<&str>) -> Result<FoundRun, Problem> {
        let unknown = || Problem::not_found(format!("there is no run `{}`", run.escape_default()));
        let id: RunId = run.parse().map_err(|_| unknown())?;
        for directory in self.projects() {
            if project.is_some_and(|project| Path::new(project) != directory) {
                continue;
            }
            let Some(journal) = self.journal(&directory)? else { continue };
            match journal.run(id.as_str()) {
                Ok(row) => return Ok(FoundRun { project: directory, journal, row }),
                Err(fusee::journal::JournalError::NoSuchRun { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(unknown())
    }

    /// A watch on the journal of a run.
    pub(crate) fn watch(&self, journal: &Journal) -> JournalWatch {
        let mut watches = self.watches.lock();
        watches
            .entry(journal.path().to_owned())
            .or_insert_with(|| JournalWatch::start(journal.path()))
            .clone()
    }

    /// The live events of a run that this process works on. All its watchers share them.
    pub(crate) fn event_hub(
        &self,
        run: &FoundRun,
        control: &Arc<RunControl>,
    ) -> Result<Arc<EventHub>, Problem> {
        let mut feeds = self.feeds.lock();
        let key = (run.journal.path().to_owned(), run.id().clone());
        // A run that was resumed meanwhile has another handle, and a feed of its own.
        let known = feeds.get(&key).filter(|source| Arc::ptr_eq(&source.control, control));
        if let Some(feed) = known.and_then(|source| source.feed.upgrade()) {
            return Ok(feed);
        }
        feeds.retain(|_, source| source.feed.strong_count() > 0);
        let cursor = run.journal.event_index(run.id(), u64::MAX)?.last;
        let feed = EventHub::start(control.events_after(cursor), cursor);
        feeds.insert(key, LiveSource { control: Arc::clone(control), feed: Arc::downgrade(&feed) });
        Ok(feed)
    }

    /// The outline of a run, up to its newest event.
    pub(crate) fn outline(&self, run: &FoundRun) -> Result<SharedOutline, Problem> {
        let key = (run.journal.path().to_owned(), run.row.id.clone(), run.row.started_ms);
        let outline = {
            let mut outlines = self.outlines.lock();
            let at = outlines.iter().position(|(other, _)| *other == key);
            // The most recently used is last.
            let entry =
                at.and_then(|at| outlines.remove(at)).unwrap_or_else(|| (key, SharedOutline::default()));
            let outline = Arc::clone(&entry.1);
            outlines.push_back(entry);
            if outlines.len() > OUTLINES {
                outlines.pop_front();
            }
            outline
        };
        let mut growing = outline.lock();
        if growing.seen == 0 {
            // A journal of another version may have settings that cannot be read; the cost comes at the end then.
            let settings = run::settings_of(&run.journal, &run.row.id).ok();
            *growing = Outline::new(settings.and_then(|settings| settings.price));
        }
        loop {
            let events = run.journal.events(&run.row.id, growing.seen, u64::MAX, PAGE)?;
            events.iter().for_each(|event| growing.add(event));
            if events.len() < PAGE {
                break;
            }
        }
        drop(growing);
        Ok(outline)
    }

    /// Notes that a question is being answered; false if it was before.
    pub(crate) fn claim_answer(&self, run: &FoundRun, question: &str) -> bool {
        let mut answered = self.answered.lock();
        // The answers of ended runs are never released.
        if answered.len() > 10_000 {
            answered.clear();
        }
        answered.insert((run.journal.path().to_owned(), run.row.id.clone(), question.to_owned()))
    }

    /// Allows a question to be answered again, because the answer could not be delivered.
    pub(crate) fn release_answer(&self, run: &FoundRun, question: &str) {
        let key = (run.journal.path().to_owned(), run.row.id.clone(), question.to_owned());
        self.answered.lock().remove(&key);
    }
}
