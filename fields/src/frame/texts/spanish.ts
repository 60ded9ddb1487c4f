import type { Texts } from './texts.ts'

// As in Spain, where it is caducidad that Latin America calls vencimiento; both understand both.
export const spanish: Texts = {
  language: 'es',
  direction: 'ltr',
  title: 'Datos de la tarjeta',
  labels: {
    number: 'Número de tarjeta',
    expiry: 'Fecha de caducidad',
    cvc: 'Código de seguridad',
    name: 'Nombre en la tarjeta',
    'postal-code': 'Código postal',
    text: 'Texto',
  },
  copy: 'Copiar',
  copied: 'Copiado',
  notCopied: 'No se puede copiar',
  placeholders: { expiry: 'MM / AA' },
  brandChoice: 'Marca de la tarjeta',
  errors: {
    'number.missing': 'Introduce el número de tarjeta.',
    'number.incomplete': 'El número de tarjeta es demasiado corto.',
    'number.invalid': 'El número de tarjeta no es válido. Compruébalo.',
    'number.brand-not-accepted': 'Aquí no se aceptan tarjetas de esta marca.',
    'expiry.missing': 'Introduce la fecha de caducidad.',
    'expiry.incomplete': 'Introduce el mes y el año de caducidad.',
    'expiry.invalid': 'La fecha de caducidad no es válida. Compruébala.',
    'expiry.past': 'La tarjeta ha caducado.',
    'cvc.missing': 'Introduce el código de seguridad.',
    'cvc.incomplete': 'El código de seguridad es demasiado corto.',
    'cvc.invalid': 'El código de seguridad es demasiado largo para esta tarjeta.',
    'name.missing': 'Introduce el nombre que figura en la tarjeta.',
    'postal-code.missing': 'Introduce el código postal.',
    missing: 'Rellena este campo.',
    'too-long': 'Este texto es demasiado largo.',
  },
}
