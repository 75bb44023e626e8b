import { look } from '../../lib/look.ts';

/** The page at `replay_view_url`: a player, or a note that there is nothing to play yet. It has no script, so none has to be allowed. */
export const replayViewCsp =
  "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors *";

export function replayView({ ready, videoPath, title }: { ready: boolean; videoPath: string; title: string }): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
${ready ? '' : '<meta http-equiv="refresh" content="2">\n'}<title>Replay ${escape(title)}</title>
<style>
${look('dark')}  body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--ground); color: var(--text); font: 16px/1.5 var(--plain) }
  video { max-width: 100vw; max-height: 100vh; background: #000 }
</style>
${ready ? `<video src="${escape(videoPath)}" controls autoplay muted playsinline></video>` : '<p role="status">The video is not finished yet. This page shows it as soon as it is.</p>'}
</html>
`;
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
