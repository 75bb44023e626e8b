// An agent's loop: look, decide, act. The session is used by hand, over HTTP, so that no driver has to stay connected.
import { corral, url } from './client.mjs';

const session = await corral.browsers.create({ headless: true, start_url: url });
const id = session.session_id;
try {
  for (let step = 1; step <= 3; step++) {
    const screenshot = Buffer.from(await (await corral.browsers.computer.captureScreenshot(id)).arrayBuffer());
    const { result: page } = await corral.browsers.playwright.execute(id, {
      code: 'return { title: await page.title(), text: (await page.innerText("body")).slice(0, 2000) };',
    });
    const action = await decide({ step, screenshot, page });
    console.log(`Step ${step}: "${page.title}", a screenshot of ${screenshot.length} bytes; ${JSON.stringify(action)}`);
    if (action.click) await corral.browsers.computer.clickMouse(id, action.click);
    if (action.type) await corral.browsers.computer.typeText(id, { text: action.type });
  }
} finally {
  await corral.browsers.deleteByID(id);
}

/** Your model goes here: it gets what a person would see, and answers with what a person would do. This one clicks and types blindly. */
async function decide({ step }) {
  return step % 2 === 1 ? { click: { x: 100, y: 100 } } : { type: 'hello' };
}
