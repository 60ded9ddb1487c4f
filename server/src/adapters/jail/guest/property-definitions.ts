import { redefine } from './pending-callbacks.ts'

const { apply } = Reflect

/** Calls `note` with the object before code defines its properties, which may change their flags. */
export function beforeDefinitions(note: (object: object) => void): void {
  const { defineProperties, defineProperty } = Object
  const define = Reflect.get(Reflect, 'defineProperty')
  redefine(Object, {
    defineProperties(object: object, properties: PropertyDescriptorMap) {
      note(object)
      return defineProperties(object, properties)
    },
    defineProperty(object: object, key: PropertyKey, descriptor: PropertyDescriptor) {
      note(object)
      return defineProperty(object, key, descriptor)
    },
  })
  redefine(Reflect, {
    defineProperty(object: object, key: PropertyKey, descriptor: PropertyDescriptor) {
      note(object)
      return define(object, key, descriptor)
    },
  })
  for (const name of ['__defineGetter__', '__defineSetter__']) {
    const method: (key: PropertyKey, accessor: Function) => void = Reflect.get(
      Object.prototype,
      name,
    )
    redefine(Object.prototype, {
      [name](this: object, key: PropertyKey, accessor: Function) {
        note(this)
        apply(method, this, [key, accessor])
      },
    })
  }
}
