const { setTimeout: sleep } = require('timers/promises')

module.exports = async (req) => {
  const steps = []
  for (let attempt = 1; attempt <= 3; attempt++) {
    await sleep(10 * attempt)
    steps.push(attempt)
  }
  const ticks = await new Promise((resolve) => {
    let count = 0
    const timer = setInterval(() => {
      if (++count === 3) {
        clearInterval(timer)
        resolve(count)
      }
    }, 5)
  })
  const controller = new AbortController()
  setTimeout(() => controller.abort(), 20)
  const aborted = await fetch(`${req.configuration.API_URL}/slow`, {
    signal: controller.signal,
  }).catch((error) => error.name)
  return { raw: { steps, ticks, aborted } }
}
