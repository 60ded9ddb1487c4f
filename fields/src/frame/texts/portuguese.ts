import type { Texts } from './texts.ts'

// Words that Portugal and Brazil share, since one text serves both.
export const portuguese: Texts = {
  language: 'pt',
  direction: 'ltr',
  title: 'Dados do cartão',
  labels: {
    number: 'Número do cartão',
    expiry: 'Data de validade',
    cvc: 'Código de segurança',
    name: 'Nome no cartão',
    'postal-code': 'Código postal',
    text: 'Texto',
  },
  copy: 'Copiar',
  copied: 'Copiado',
  notCopied: 'Não é possível copiar',
  placeholders: { expiry: 'MM / AA' },
  brandChoice: 'Marca do cartão',
  errors: {
    'number.missing': 'Insira o número do cartão.',
    'number.incomplete': 'O número do cartão é muito curto.',
    'number.invalid': 'O número do cartão não é válido. Verifique-o.',
    'number.brand-not-accepted': 'Não aceitamos cartões desta marca.',
    'expiry.missing': 'Insira a data de validade.',
    'expiry.incomplete': 'Insira o mês e o ano da data de validade.',
    'expiry.invalid': 'A data de validade não é válida. Verifique-a.',
    'expiry.past': 'O cartão expirou.',
    'cvc.missing': 'Insira o código de segurança.',
    'cvc.incomplete': 'O código de segurança é muito curto.',
    'cvc.invalid': 'O código de segurança é muito longo para este cartão.',
    'name.missing': 'Insira o nome que está no cartão.',
    'postal-code.missing': 'Insira o código postal.',
    missing: 'Preencha este campo.',
    'too-long': 'Este texto é muito longo.',
  },
}
