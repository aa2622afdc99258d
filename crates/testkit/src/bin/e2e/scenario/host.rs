use crate::stage::Stage;
pub(super) async fn play(_: &Stage) -> anyhow::Result<()> {
    Ok(())
}
pub(super) fn impossible() -> Option<String> {
    None
}
