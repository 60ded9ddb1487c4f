/** A checkout in React. The card fields are a custom element, which React renders like any other. */
import { useRef, useState } from 'react'
import { createRoot } from 'react-dom/client'

const publicKey = document.querySelector('meta[name=public-key]').content

function Checkout() {
  const card = useRef(null)
  const [state, setState] = useState(null)
  const [message, setMessage] = useState('')

  async function pay(event) {
    event.preventDefault()
    setMessage('One moment …')
    try {
      const token = await card.current.tokenize({ metadata: { order: '17' } })
      const response = await fetch('/pay', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ token: token.id }),
      })
      setMessage((await response.json()).message)
    } catch (error) {
      setMessage(error.message)
    }
  }

  return (
    <form onSubmit={pay}>
      <h1>One tea pot, 30 euros</h1>
      <symbolon-card
        ref={card}
        public-key={publicKey}
        onchange={(event) => setState(event.detail)}
        onerror={(event) => setMessage(event.detail.message)}
      />
      <button>Pay{state?.lastFour ? ` with ${state.brand} ${state.lastFour}` : ''}</button>
      <p role="status">{message}</p>
    </form>
  )
}

createRoot(document.body.appendChild(document.createElement('main'))).render(<Checkout />)
